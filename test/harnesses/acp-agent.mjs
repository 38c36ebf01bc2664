// An agent that speaks the Agent Client Protocol and does what the first word of its prompt says.
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import readline from 'node:readline'

const say = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const waiting = new Map()
let asked = 0

/** Asks the client, and gives its whole answer. */
function ask(method, params) {
  const id = `agent-${asked++}`
  say({ id, method, params: { sessionId: 'one', ...params } })
  return new Promise(resolve => waiting.set(id, resolve))
}

async function askModel(
  prompt,
  { model = process.env.ESPALIER_MODEL, key = process.env.OPENAI_API_KEY } = {},
) {
  const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: prompt }] }),
  })
  const { choices, error } = await response.json()
  return choices?.[0].message.content ?? `refused: ${error.message}`
}

const acts = {
  asks: askModel,
  never: () => 'I know it already',
  hangs: () => new Promise(() => setInterval(() => {}, 1000)),
  crashes: async prompt => {
    await askModel(prompt)
    process.stderr.write('out of luck')
    process.exit(3)
  },
  forks: async prompt => {
    const words = ['-c', 'while :; do sleep 1; done']
    for (let made = 0; made < 5; made++)
      spawn('/bin/sh', words, { detached: true, stdio: 'ignore' }).unref()
    return askModel(prompt)
  },
  floods: prompt => {
    process.stderr.write('x'.repeat(20_000_000))
    return askModel(prompt)
  },
  forgets: prompt => {
    delete process.env.OPENAI_API_KEY
    return askModel(prompt, { key: undefined })
  },
  wants: prompt => askModel(prompt, { model: 'gpt-9' }),
  looks: async prompt => {
    await askModel(prompt)
    const names = Object.keys(process.env).filter(name =>
      /SECRET|ESPALIER_POLICY_KEY|TOKEN/.test(name),
    )
    const places = ['/tests', '/solution', '/logs', process.argv[2]].filter(
      path => path && existsSync(path),
    )
    const outside = await fetch('http://1.1.1.1', { signal: AbortSignal.timeout(500) }).then(
      () => ['network'],
      () => [],
    )
    return JSON.stringify([
      ...names,
      ...places,
      ...outside,
      ...readdirSync('/').filter(name => name === 'root' || name === 'home'),
    ])
  },
  methods: async prompt => {
    await askModel(prompt)
    const path = `${process.cwd()}/notes.txt`
    const done = [
      await ask('fs/write_text_file', { path, content: 'one\ntwo\nthree' }),
      await ask('fs/read_text_file', { path, line: 2, limit: 1 }),
      await ask('fs/read_text_file', { path: '/etc/passwd' }),
      await ask('fs/write_text_file', { path: `${process.cwd()}/../outside.txt`, content: '' }),
      await ask('session/request_permission', {
        toolCall: { toolCallId: '1' },
        options: [
          { optionId: 'no', kind: 'reject_once', name: 'No' },
          { optionId: 'yes', kind: 'allow_once', name: 'Yes' },
        ],
      }),
      await ask('terminal/create', { command: 'cat', args: ['notes.txt'] }),
      await ask('terminal/wait_for_exit', { terminalId: 'terminal-1' }),
      await ask('terminal/output', { terminalId: 'terminal-1' }),
      await ask('terminal/create', { command: 'true', cwd: '/' }),
      await ask('terminal/wait_for_exit', { terminalId: 'terminal-2' }),
      await ask('session/sing', {}),
    ]
    return JSON.stringify(done.map(({ result, error }) => result ?? error.code))
  },
  // More than anybody would answer, and a message of more values than any has.
  talks: async prompt => {
    await askModel(prompt)
    return 'x'.repeat(2_500_000).concat('\n').repeat(2)
  },
  lists: async prompt => {
    await askModel(prompt)
    process.stdout.write(`{"method":"session/update","params":[${'{},'.repeat(600_000)}0]}\n`)
    return new Promise(() => setInterval(() => {}, 1000))
  },
  mends: async prompt => {
    writeFileSync('hello.txt', 'hello world\n')
    return askModel(prompt)
  },
}

const chunk = text =>
  say({
    method: 'session/update',
    params: {
      sessionId: 'one',
      update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } },
    },
  })

async function prompted(id, text) {
  const act = /^\w+/.exec(text)?.[0]
  chunk('let me see')
  say({
    method: 'session/update',
    params: {
      sessionId: 'one',
      update: { sessionUpdate: 'tool_call', toolCallId: '1', title: 'look' },
    },
  })
  const answer = await (acts[act] ?? acts.mends)(text)
  const length = Math.max(8, Math.ceil(answer.length / 100))
  for (let at = 0; at < answer.length; at += length) chunk(answer.slice(at, at + length))
  say({ id, result: { stopReason: 'end_turn' } })
}

const methods = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: {} }),
  'session/new': () => ({ sessionId: 'one' }),
}
for await (const line of readline.createInterface({ input: process.stdin })) {
  const message = JSON.parse(line)
  if (message.method === 'session/prompt') void prompted(message.id, message.params.prompt[0].text)
  else if (message.method) say({ id: message.id, result: methods[message.method]() })
  else waiting.get(message.id)?.(message)
}
