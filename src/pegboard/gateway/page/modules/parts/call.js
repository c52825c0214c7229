// A call that is seen while it runs: its progress, and what its server asks.
import { ApiError, part, readAnswer, send } from "./api.js";
import { parse, write } from "./exact_json.js";

/**
 * The events of a stream.
 * @param {Response} response @returns {AsyncGenerator<[string, string]>} the kind and the data of each
 */
async function* events(response) {
  const reader = /** @type {ReadableStream<any>} */ (response.body).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    text += piece.value;
    const whole = text.split("\n\n");
    text = whole.pop() ?? "";
    for (const each of whole) {
      const [, kind, data] = /^event: (.*)\ndata: ([^]*)/.exec(each) ?? [];
      if (kind) yield [kind, data];
    }
  }
}

/**
 * Call a tool, round after round while its server asks something.
 * @param {string} tool @param {any} given
 * @param {{signal: AbortSignal, onProgress: (progress: any) => void, onAsk: (requests: Record<string, any>) => Promise<Record<string, any>>}} options
 */
export async function callTool(tool, given, { signal, onProgress, onAsk }) {
  /** @type {any} */
  let round = { arguments: given };
  for (;;) {
    const response = await send(`tools/${part(tool)}/call`, { method: "POST", text: write(round), accept: "text/event-stream", signal });
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return readAnswer(await response.text(), response.status, parse);
    let [last, said] = ["", ""];
    // To its end, or the connection would be kept for what is left.
    for await (const [kind, data] of events(response)) {
      if (kind === "progress") onProgress(parse(data));
      else [last, said] = [kind, data];
    }
    if (last === "") throw new ApiError("The gateway ended the call without a result.", 0);
    const answer = readAnswer(said, response.status, parse);
    if (last !== "input") return answer;
    const { inputRequests: asked = {}, requestState } = answer;
    if (!Object.keys(asked ?? "").length) throw new ApiError("The server asks nothing.", 0);
    round = { arguments: given, inputResponses: await onAsk(asked), requestState };
  }
}
