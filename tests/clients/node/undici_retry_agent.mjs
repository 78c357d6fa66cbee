// undici's RetryAgent.
import { Agent, RetryAgent, request } from 'undici'

const bodies = {
  get: {},
  post: { body: '{"order":1}', headers: { 'content-type': 'application/json' } },
  upload: { body: Buffer.alloc(5_000_000, 'u') },
}

const [attempts, ...calls] = process.argv.slice(2)
const dispatcher = new RetryAgent(new Agent({ headersTimeout: 20_000, bodyTimeout: 20_000 }), {
  maxRetries: Number(attempts) - 1,
  minTimeout: 10,
  maxTimeout: 10,
  methods: ['GET', 'POST'],
  retryAfter: false,
})

async function call(kind, url) {
  const line = { status: null, retry_after: null, denied: null, error: null }
  const keep = (status, headers) => {
    line.status = status
    line.retry_after = headers['retry-after'] ?? null
    line.denied = headers['x-retry-denied'] ?? null
  }
  try {
    const answer = await request(url, { method: kind === 'get' ? 'GET' : 'POST', dispatcher, ...bodies[kind] })
    await answer.body.dump()
    keep(answer.statusCode, answer.headers)
  } catch (error) {
    // The agent's way to say that the last attempt failed, too.
    if (error.code === 'UND_ERR_REQ_RETRY') keep(error.statusCode, error.headers)
    else line.error = `${error.code} ${error.message}`
  }
  console.log(JSON.stringify(line))
}

for (let n = 0; n < calls.length; n += 2) await call(calls[n], calls[n + 1])
await dispatcher.close()
