// What a form shows for a JSON schema. What a schema leaves unsure is JSON, and only that part of the form.
import { Draft, isNumber, isObject, textOf, write } from "./exact_json.js";

/** @typedef {{kind: "text" | "number" | "choice" | "list" | "object" | "json", schema: any, root: any, depth: number, isRequired: boolean, choices: [any, string][]}} FormField */

const MOST_DEPTH = 12;
const MOST_ITEMS = 200;
// Of members and of their text, with which a form begins.
const MOST_BEGUN = 400;
const TEXT_OF_ONE = 100;
// Keys that are looked at, choices, and characters that are compared, for all of a form. What is left then is JSON.
const MOST_WORK = 20000;
// Words about a schema, which say nothing of its values.
const NOTES = "title description examples default deprecated nullable $defs definitions $schema $id".split(" ");
const LIMITS = /^(exclusive)?(min|max)|^(multipleOf|pattern|format)$/i;
const TYPES = new Map([["email", "email"], ["uri", "url"], ["date", "date"], ["date-time", "datetime-local"], ["password", "password"]]);

// What is known of each schema, found once for all that is drawn; how a field of it is; and for each whole, what work is left.
const known = new WeakMap();
const shapes = new WeakMap();
const budgets = new WeakMap();
const sizeOf = (/** @type {any} */ value) => Object.keys(value ?? "").length;

/** @param {any} root @param {number} work */
function spend(root, work) {
  const left = (budgets.get(root) ?? MOST_WORK) - work;
  budgets.set(root, left);
  // Whoever wants a field catches it.
  if (left < 0) throw root;
}

/** What a reference within the same schema leads to. @param {string} ref @param {any} root */
const follow = (ref, root) => ref.split("/").slice(1).map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"))
  .reduce((at, step) => (isObject(at) && step in at ? at[step] : undefined), ref.startsWith("#") ? root : undefined);

/** Two schemas that both hold as one; null where only a validator could tell what that means. @param {any} a @param {any} b @param {any} root */
function merge(a, b, root) {
  const both = { ...a };
  for (const each of [a, b]) spend(root, sizeOf(each) + sizeOf(each.properties) + sizeOf(each.required));
  for (const key of Object.keys(b)) {
    if (!(key in both) || NOTES.includes(key) || both[key] === b[key]) both[key] = b[key];
    else if (key === "required") both.required = [...both.required, ...b.required];
    else if (key === "properties") {
      both.properties = { ...a.properties };
      for (const name of Object.keys(b.properties)) both.properties[name] = name in a.properties ? { allOf: [a.properties[name], b.properties[name]] } : b.properties[name];
    } else {
      const [one, other] = [both[key], b[key]].map((each) => write(each));
      spend(root, one.length + other.length);
      if (one !== other) return null;
    }
  }
  return both;
}

/** A schema without references, `allOf` and null among its types, or null. @param {any} schema @param {any} root @returns {any} */
function resolve(schema, root) {
  // What leads back to itself is nothing.
  if (isObject(schema) && !known.has(schema)) known.set(schema, null).set(schema, flatten(schema, root));
  return known.get(schema);
}

/** @type {typeof resolve} */
function flatten(schema, root) {
  spend(root, sizeOf(schema));
  const { $ref, allOf, anyOf, oneOf, ...rest } = schema;
  const parts = [...(typeof $ref === "string" ? [follow($ref, root)] : []), ...(allOf ?? [])];
  const union = anyOf ?? oneOf;
  if (parts.length) {
    let whole = union ? { ...rest, anyOf: union } : rest;
    for (const each of parts) {
      const part = resolve(each, root);
      whole = part && merge(part, whole, root);
      if (!whole) return null;
    }
    return whole.anyOf ? flatten(whole, root) : whole;
  }
  const isNull = (each) => each?.type === "null" || each === "null" || each === null;
  if (Array.isArray(union)) {
    const others = union.filter((each) => !isNull(each));
    const notes = others.length < union.length ? { ...rest, nullable: true } : rest;
    if (others.length !== 1) return { ...notes, anyOf: others };
    const only = resolve(others[0], root);
    return only && merge(only, notes, root);
  }
  for (const key of ["type", "enum"]) {
    if (!Array.isArray(rest[key]) || !rest[key].some(isNull)) continue;
    rest[key] = rest[key].filter((each) => !isNull(each));
    // Both have to take it.
    rest.nullable = key === "type" ? !rest.enum || (Array.isArray(rest.enum) && rest.enum.includes(null)) : rest.nullable ?? !rest.type;
  }
  if (Array.isArray(rest.type) && rest.type.length === 1) [rest.type] = rest.type;
  return rest;
}

/** Texts and numbers that can be chosen, each with its words. @param {any} schema @returns {[any, string][]} */
function choicesOf(schema) {
  const consts = "const" in schema ? [schema] : schema.anyOf;
  const found = schema.enum?.map((each, /** @type {number} */ at) => [each, schema.enumNames?.[at] ?? each]) ?? consts?.map((each) => [each?.const, each?.title ?? each?.const]) ?? [];
  return found.every(([value]) => ["string", "number"].includes(typeof value)) ? found.map(([value, name]) => [value, textOf(name)]) : [];
}

/** What is shown for a schema. @param {any} given @param {any} [root] the whole, in which references are found @returns {FormField} */
export function fieldOf(given, root = given, isRequired = true, depth = 0) {
  const field = /** @type {FormField} */ ({ kind: "json", schema: isObject(given) ? given : {}, root, depth, isRequired, choices: [] });
  try {
    const schema = depth > MOST_DEPTH ? null : resolve(given, root);
    if (schema && !shapes.has(schema)) shapes.set(schema, { schema, ...kindOf(schema, root) });
    return { ...field, ...shapes.get(schema) };
  } catch {
    // Whatever a server calls a schema, and what would take too long.
    known.set(given, null);
    return field;
  }
}

/** @param {any} schema @param {any} root @returns {Partial<FormField>} */
function kindOf(schema, root) {
  const isFixed = "enum" in schema || "const" in schema || "anyOf" in schema;
  spend(root, sizeOf(schema.enum ?? schema.anyOf));
  const choices = isFixed ? choicesOf(schema) : schema.type === "boolean" ? /** @type {[any, string][]} */ ([[true, "true"], [false, "false"]]) : [];
  if (choices.length) return { kind: "choice", choices };
  if (isFixed || "not" in schema || "if" in schema) return {};
  if (schema.type === "string") return { kind: "text" };
  if (schema.type === "number" || schema.type === "integer") return { kind: "number" };
  if (schema.type === "array") return schema.prefixItems ? {} : { kind: "list" };
  return schema.type === "object" || (!schema.type && schema.properties) ? { kind: "object" } : {};
}

/** The fields of an object by name. @param {FormField} field @returns {[string, FormField][]} */
export const membersOf = ({ schema, root, depth }, needed = new Set(Array.isArray(schema.required) ? schema.required : [])) => Object.keys(schema.properties ?? {})
  .map((name) => [name, fieldOf(schema.properties[name], root, needed.has(name), depth + 1)]);
/** The field of whatever else is in an object. @param {FormField} field */
export const otherOf = ({ schema, root, depth }) => fieldOf(schema.additionalProperties || true, root, true, depth + 1);
/** Whether a form offers to put more into an object. @param {FormField} field */
export const takesMore = ({ schema }) => Boolean(schema.additionalProperties ?? (!schema.properties || schema.patternProperties));
/** @param {FormField} field */
export const itemOf = ({ schema, root, depth }) => fieldOf(schema.items ?? true, root, true, depth + 1);

/** What is there before anybody types: nothing, unless it has a default or must be there. @param {FormField} field @returns {any} */
export function initial(field, room = { left: MOST_BEGUN }) {
  const { kind, schema, isRequired } = field;
  if (room.left < 0) return undefined;
  const given = "default" in schema ? schema.default : isRequired ? schema.const : undefined;
  const text = write(given);
  // What must be within itself has no end, and what is long may be meant in many places.
  room.left -= given === undefined ? sizeOf(isRequired && schema.properties) : text.length / TEXT_OF_ONE;
  if (room.left < 0) return undefined;
  if (isRequired ? given !== undefined : !["null", '""', "[]", "{}"].includes(text)) return given;
  if (!isRequired) return undefined;
  if (kind === "list") return [];
  if (kind !== "object") return schema.nullable ? null : undefined;
  const value = Object.create(null);
  for (const [name, member] of membersOf(field)) {
    const first = initial(member, room);
    if (first !== undefined) value[name] = first;
  }
  return value;
}

/** Whether a value can be shown in its field without a loss; what cannot is shown as JSON. @param {FormField} field @param {any} value */
export function fits({ kind, schema, choices, isRequired }, value) {
  // A list that is missing has no field that could say so.
  if ((value === undefined && !(isRequired && ["list", "object"].includes(kind))) || (value === null && schema.nullable)) return true;
  if (kind === "text") return typeof value === "string" && !value.includes("\r");
  if (kind === "number") return isNumber(value) || (value instanceof Draft && !value.text.includes("\n"));
  if (kind === "choice") return choices.some(([each]) => each === value);
  const isWhole = kind === "list" ? Array.isArray(value) : kind === "object" && isObject(value);
  return isWhole && Object.keys({ ...schema.properties, ...value }).length <= MOST_ITEMS;
}

/** The type of an input that shows a text as it is; "" is an area for any text. @param {any} schema @param {string} value */
export function inputType(schema, value) {
  const type = schema.writeOnly ? "password" : TYPES.get(schema.format) ?? "";
  const isKept = type === "datetime-local" ? momentOf(localOf(value)) === value : ({ password: /^.*$/, date: /^\d{4}-\d\d-\d\d$/ }[type] ?? /^\S(.*\S)?$/).test(value);
  return !value || isKept ? type : "";
}

/** A moment as an input has it: in the time of this browser, without its zone. @param {string} moment */
export function localOf(moment) {
  const at = new Date(moment);
  // Swedes write a time as inputs do. In a year of long ago zones are no whole minutes, so nothing is reckoned here.
  return Number.isNaN(Number(at)) ? "" : at.toLocaleString("sv").padStart(19, "0").replace(" ", "T");
}
/** The same as JSON has it. @param {string} local */
export function momentOf(local) {
  const at = new Date(local);
  return Number.isNaN(Number(at)) ? "" : at.toISOString().replace(".000Z", "Z");
}

/** What a schema says of its values, in words, as far as their field does not show it. @param {FormField} field @param {string} type of its input */
export const limitsOf = ({ kind, schema }, type) => [...(schema.enum && kind === "json" ? [`one of ${write(schema.enum).slice(1, -1)}`] : []),
  ...Object.keys(schema).filter((key) => LIMITS.test(key) && !(type && key === "format")).map((key) => `${key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${textOf(schema[key])}`)].join(", ");

/** An example for an empty field. @param {any} schema */
export const exampleOf = ({ examples }) => textOf(Array.isArray(examples) ? examples[0] : undefined).slice(0, MOST_ITEMS);

/** What stands in a new place of a list or an object, where something has to. @param {FormField} field @returns {any} */
export const blank = (field) => initial(field) ?? { text: "", choice: field.choices[0]?.[0] }[/** @type {string} */ (field.kind)] ?? (field.schema.nullable ? null : new Draft("", "A value is missing."));
