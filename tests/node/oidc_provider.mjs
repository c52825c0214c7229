// An authorization server for tests: oidc-provider with everything on that MCP clients use, and a user who agrees to all.
// Its first line on stdout is its issuer. Arguments: how many seconds access tokens last, the path of its issuer, the
// JWK of a client that signs (`signer`), and where the metadata documents of https://gateway.example really are.
import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const lifetime = Number(process.argv[2] ?? 600);
const [path, jwk, documents] = [process.argv[3] ?? '', JSON.parse(process.argv[4] || 'null'), process.argv[5] ?? ''];
const SCOPES = 'mcp x.write';
const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}${path}`;
const key = (kid) => ({
  ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256',
});
const shared = { redirect_uris: [], response_types: [], grant_types: ['client_credentials'] };

const provider = new Provider(issuer, {
  jwks: { keys: [key('first')] },
  clients: [
    { client_id: 'machine', client_secret: 'a-secret-of-the-tests', ...shared },
    // One that is registered already may ask for any scope.
    {
      client_id: 'native', token_endpoint_auth_method: 'none', application_type: 'native', redirect_uris: ['http://127.0.0.1:1/callback'],
      response_types: ['code'], grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    },
    ...(jwk ? [{ client_id: 'signer', token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] }, ...shared }] : []),
  ],
  scopes: ['openid', 'offline_access', ...SCOPES.split(' ')],
  clientDefaults: { token_endpoint_auth_method: 'client_secret_post' },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: () => ({ groups: ['testers'] }),
  issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
  ttl: { AccessToken: lifetime, ClientCredentials: lifetime, RefreshToken: 3600, Session: 3600, Grant: 3600, IdToken: 600, Interaction: 600 },
  cookies: { keys: ['of the tests'] },
  pkce: { required: () => true },
  interactions: { url: (_, interaction) => `${path}/interaction/${interaction.uid}` },
  fetch: (url, { dispatcher, ...rest }) => fetch(String(url).replace('https://gateway.example', documents), rest),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    deviceFlow: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: SCOPES, audience: resource, accessTokenTTL: lifetime, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});

// The user: signs in as alice, and grants whatever is asked for, unless a hint says that this one refuses.
provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/interaction/')) return next();
  const { prompt, params, session, grantId } = await provider.interactionDetails(ctx.req, ctx.res);
  if (params.login_hint === 'refuses') {
    const refusal = { error: 'access_denied', error_description: 'the user said <b>no</b>' };
    return provider.interactionFinished(ctx.req, ctx.res, refusal);
  }
  if (prompt.name === 'login') {
    return provider.interactionFinished(ctx.req, ctx.res, { login: { accountId: 'alice' } });
  }
  const grant = grantId ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(prompt.details.missingOIDCScope?.join(' ') ?? 'openid');
  for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(ctx.req, ctx.res, { consent }, { mergeWithLastSubmission: true });
});

const answer = provider.callback();
server.on('request', (request, response) => {
  request.originalUrl = request.url;
  if (path && request.url.startsWith(`${path}/`)) request.url = request.url.slice(path.length);
  answer(request, response);
});
console.log(issuer);
