// A file that the page makes itself.

/** Have the browser save a text as a file. @param {string} name @param {string} text @param {string} [kind] */
export function download(name, text, kind = "text/plain") {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
