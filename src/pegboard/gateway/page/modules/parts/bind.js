// Fields of what is being written: each shows a value, and gives its new one, or the whole with it.

/** What takes the text of a field from its event. @param {(text: string) => any} take */
export const typed = (take) => (/** @type {any} */ event) => take(event.target.value);

/** @param {Record<string, any>} values @param {(values: any) => any} set */
export const bindTo = (values, set) => (/** @type {string} */ name) => ({
  value: values[name] ?? "",
  onInput: typed((text) => set({ ...values, [name]: text })),
});
