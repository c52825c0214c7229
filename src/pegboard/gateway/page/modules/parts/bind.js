// Fields of what is being written: each shows a value, and gives the whole with its new one.

/** @param {Record<string, any>} values @param {(values: any) => any} set */
export const bindTo = (values, set) => (/** @type {string} */ name) => ({
  value: values[name] ?? "",
  onInput: (/** @type {any} */ event) => set({ ...values, [name]: event.target.value }),
});
