// axios with axios-retry.
import http from 'node:http'
import { Readable } from 'node:stream'
import axios from 'axios'
import axiosRetry from 'axios-retry'

const bodies = {
  get: () => ({}),
  post: () => ({ data: { order: 1 } }),
  upload: () => ({ data: Buffer.alloc(5_000_000, 'u') }),
  chunked: () => ({ data: Readable.from(Array(20).fill(Buffer.alloc(1000, 'c'))) }),
  expect: () => ({ data: Buffer.alloc(100_000, 'e'), headers: { Expect: '100-continue' } }),
}

const [attempts, ...calls] = process.argv.slice(2)
const httpAgent = new http.Agent({ keepAlive: true })
const client = axios.create({ httpAgent, proxy: false, timeout: 20_000, maxRedirects: 0 })
axiosRetry(client, {
  retries: Number(attempts) - 1,
  retryDelay: () => 10,
  retryCondition: (error) => axiosRetry.isNetworkError(error) || error.response?.status >= 500,
})
// A stream can be read once; each attempt gets its own.
client.interceptors.request.use((config) =>
  config.kind === 'chunked' ? Object.assign(config, bodies.chunked()) : config)

async function call(kind, url) {
  const line = { status: null, retry_after: null, denied: null, error: null }
  const keep = (answer) => {
    line.status = answer.status
    line.retry_after = answer.headers['retry-after'] ?? null
    line.denied = answer.headers['x-retry-denied'] ?? null
  }
  try {
    keep(await client.request({ method: kind === 'get' ? 'get' : 'post', url, kind, ...bodies[kind]() }))
  } catch (error) {
    if (error.response) keep(error.response)
    else line.error = `${error.code} ${error.message}`
  }
  console.log(JSON.stringify(line))
}

for (let n = 0; n < calls.length; n += 2) await call(calls[n], calls[n + 1])
httpAgent.destroy()
