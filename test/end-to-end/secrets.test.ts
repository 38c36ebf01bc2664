import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { scratch, start } from './cli.ts'

const canaries = {
  key: 'canary-key-0123456789',
  token: 'canary-token "quoted" 9',
  password: 'canary-password-77',
  header: 'canary-header-abcdef',
  hook: 'canary-hook-abcdef',
}
/** In addresses that single cases have; the server has them only from there. */
const inAddresses = {
  hub: 'canary-hub-password',
  tools: 'canary-tools-password',
  parameter: 'canary-parameter-55',
}
const received: string[] = []

/** Answers a chat with every secret it knows of; every third time with an error that quotes them. */
let asked = 0
const server = createServer((request, response) => {
  let body = ''
  request.on('data', part => (body += part))
  request.on('end', () => {
    if (!request.url?.includes('chat/completions')) {
      received.push(body)
      response.setHeader('content-type', 'application/json')
      response.end(request.url === '/v1/models' ? '{"data":[{"id":"m"}]}' : '{}')
      return
    }
    const said = `you sent ${request.headers.authorization}; ${Object.values(canaries).join(' ')}`
    if (++asked % 3 === 0) {
      response.statusCode = 400
      response.end(said)
      return
    }
    const message = { role: 'assistant', content: said, reasoning_content: said }
    const usage = { prompt_tokens: 1, completion_tokens: 1 }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage }))
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
afterAll(() => server.close())

it('H4: no key, token or password is in anything that is written, printed or sent on', async () => {
  const folder = scratch()
  const { port } = server.address() as AddressInfo
  const at = `127.0.0.1:${port}`
  const words = ['roll', '--policy', `openai:http://${at}/v1`, '--served-model', 'm']
  words.push('--model', join(import.meta.dirname, '../../models/chatml-bytes'))
  words.push('--environment', 'calculator', '--tasks', '3', '--group', '2', '--retries', '0')
  words.push(
    '--record',
    'cassette.jsonl',
    '--sinks',
    '[{"to":"jsonl","out":"rows.jsonl"}]',
    '--json',
  )
  words.push('--traces', `http://user:${canaries.password}@${at}/v1/traces`)
  const url = `http://${at}/hook?token=${canaries.hook}`
  words.push('--notify', JSON.stringify([{ kind: 'webhook', url }]), '--out', 'run')
  const variables = {
    ESPALIER_POLICY_KEY: canaries.key,
    ESPALIER_TOKEN: canaries.token,
    OTEL_EXPORTER_OTLP_HEADERS: `x-auth=${canaries.header}`,
  }
  const { finished } = start(words, { folder, variables })
  const { code, stdout, stderr } = await finished
  const shown = await start(['show', 'run'], { folder }).finished
  expect([code, shown.code], stderr).toEqual([0, 0])
  expect(asked).toBeGreaterThan(3)
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
  expect(files.map(file => file.split('/').at(-1))).toEqual(
    expect.arrayContaining(['run.json', 'journal.frames', 'cassette.jsonl', 'rows.jsonl']),
  )
  const texts = [...files.map(file => readFileSync(file, 'latin1')), ...received]
  for (const text of [...texts, stdout, stderr, shown.stdout, shown.stderr]) {
    for (const canary of Object.values(canaries)) {
      for (const spelled of [canary, JSON.stringify(canary).slice(1, -1), encodeURI(canary)]) {
        expect(text.includes(spelled), `${spelled} in ${text.slice(0, 300)}`).toBe(false)
      }
    }
  }
  expect(texts.join('')).toContain('[redacted]')
})

it.each([
  [
    'a hub that refuses',
    (at: string) => ['--model', 'some/model', '--hub', `http://me:${inAddresses.hub}@${at}`],
  ],
  [
    'tools that are none',
    (at: string) => [
      '--environment',
      `tools:mcp=http://me:${inAddresses.tools}@${at}/mcp?token=${inAddresses.parameter}`,
    ],
  ],
  [
    'a policy that quotes its address',
    (at: string) => ['--policy', `openai:http://me:${inAddresses.hub}@${at}/v1`],
  ],
])('H4: neither is it with %s', async (_, wordsFor) => {
  const folder = scratch()
  received.length = 0
  const known = [canaries.key, canaries.token, ...Object.values(inAddresses)]
  const { port } = server.address() as AddressInfo
  const words = ['roll', '--served-model', 'm', '--tasks', '1', '--retries', '0', '--out', 'run']
  const given = wordsFor(`127.0.0.1:${port}`)
  if (!given.includes('--policy')) words.push('--policy', `openai:http://127.0.0.1:${port}/v1`)
  if (!given.includes('--environment')) words.push('--environment', 'calculator')
  if (!given.includes('--model'))
    words.push('--model', join(import.meta.dirname, '../../models/chatml-bytes'))
  const variables = { ESPALIER_POLICY_KEY: canaries.key, HF_TOKEN: canaries.token, HF_HOME: folder }
  const { stdout, stderr } = await start([...words, ...given], { folder, variables }).finished
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
  for (const text of [...files, stdout, stderr, ...received]) {
    for (const canary of known) expect(text).not.toContain(canary)
  }
  expect(stderr + stdout).not.toBe('')
})
