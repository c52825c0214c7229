// The TypeScript SDK's client with OAuth: signs in, calls, goes on while its tokens expire, and says what came of it.
// Arguments: the MCP address, a tool, and how many access tokens it has to have had.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';

const [address, tool, wanted] = process.argv.slice(2);
const REDIRECT = 'http://127.0.0.1:1/callback';
const said = { sessions: [], tokens: [], signIns: 0, answers: [] };
let information, tokens, verifier, code;

// A browser whose user agrees to all: it follows redirects, and keeps cookies.
async function browse(url) {
  said.signIns += 1;
  const cookies = new Map();
  while (!url.startsWith(REDIRECT)) {
    const answer = await fetch(url, { redirect: 'manual', headers: { cookie: [...cookies].map((each) => each.join('=')).join('; ') } });
    for (const line of answer.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split('=');
      cookies.set(name, value);
    }
    if (!answer.headers.get('location')) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
    url = new URL(answer.headers.get('location'), url).href;
  }
  code = new URL(url).searchParams.get('code');
}

const provider = {
  redirectUrl: REDIRECT,
  clientMetadata: {
    client_name: 'typescript', redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'], token_endpoint_auth_method: 'none', application_type: 'native',
  },
  clientInformation: () => information,
  saveClientInformation: (given) => { information = given; },
  tokens: () => tokens,
  saveTokens: (given) => { tokens = given; said.tokens.push(given.access_token); },
  redirectToAuthorization: (url) => browse(url.href),
  saveCodeVerifier: (given) => { verifier = given; },
  codeVerifier: () => verifier,
};

async function connect() {
  const transport = new StreamableHTTPClientTransport(new URL(address), { authProvider: provider });
  const client = new Client({ name: 'typescript', version: '1' });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(code);
    return connect();
  }
  return [client, transport];
}

const [client, transport] = await connect();
const until = Date.now() + 30_000;
do {
  const answer = await client.callTool({ name: tool, arguments: {} });
  said.answers.push(answer.content[0].text);
  said.sessions.push(transport.sessionId);
  await new Promise((resolve) => setTimeout(resolve, 50));
} while (said.tokens.length < Number(wanted) && Date.now() < until);
await client.close();
console.log(JSON.stringify({ ...said, sessions: new Set(said.sessions).size, answers: [...new Set(said.answers)] }));
