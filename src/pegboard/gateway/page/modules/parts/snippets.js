// The same call for a terminal and for a program, quoted so that it can be pasted.
import { Numeral, isObject, write } from "./exact_json.js";

/** A word of a shell's command line. @param {string} text */
const shell = (text) => (/^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** @param {string} tool @param {any} given */
export const asCommand = (tool, given) => `pegboard call ${shell(tool)} ${shell(write(given))}`;

/** @param {string} tool @param {any} given @param {boolean} needsToken */
export const asCurl = (tool, given, needsToken) => [
  `curl -X POST ${shell(`${location.origin}/api/tools/${encodeURIComponent(tool)}/call`)}`,
  ...(needsToken ? ['-H "Authorization: Bearer $TOKEN"'] : []),
  "-H 'Content-Type: application/json'",
  `-d ${shell(write({ arguments: given }))}`,
].join(" \\\n  ");

/** @param {string} tool @param {any} given */
export function asPython(tool, given) {
  let exact = "";
  const literal = (value) => {
    // Python keeps any whole number but -0; of others those that JavaScript keeps too.
    if (value instanceof Numeral && !/^-?[1-9]\d*$/.test(value.text)) {
      exact = "\nfrom pegboard.exactjson import Number";
      return `Number("${value.text}")`;
    }
    if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
    if (isObject(value)) return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${literal(each)}`).join(", ")}}`;
    return value === null ? "None" : typeof value === "boolean" ? (value ? "True" : "False") : write(value);
  };
  const words = literal(given);
  return `import asyncio

from pegboard import Pegboard${exact}


async def main() -> None:
    async with Pegboard.from_config() as board:
        result = await board.call(${JSON.stringify(tool)}, ${words})
        print(result.unwrap())


asyncio.run(main())
`;
}
