import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import type { ChannelSettings } from '../../settings/notify-channel.ts'
import type { Notice } from './notice.ts'

/** A way to notify people. */
export interface Channel {
  readonly name: string
  readonly on: readonly Notice['level'][]
  /** Rejects if the notice could not be delivered. */
  send(notice: Notice, signal: AbortSignal): Promise<void>
  /** Secrets that must never be printed. */
  readonly secrets: readonly string[]
}

type Variables = Readonly<Record<string, string | undefined>>

/** Opens a channel: reads its address and secret from where they are kept. */
export async function makeChannel(
  settings: ChannelSettings,
  variables: Variables,
): Promise<Channel> {
  const on = settings.on ?? ['failure', 'warning', 'end']
  if (settings.kind === 'command') {
    const { command } = settings
    return {
      name: 'command',
      on,
      secrets: [],
      send: (notice, signal) => run(command, notice, signal),
    }
  }
  const url =
    settings.url ??
    (await readSecret(settings.urlFile, settings.urlVariable, { variables, what: 'url' }))
  if (url === undefined) {
    throw new Error('notify: webhook needs its address: url, urlFile or urlVariable')
  }
  const { secretFile, secretVariable } = settings
  const secret = await readSecret(secretFile, secretVariable, { variables, what: 'secret' })
  return {
    name: 'webhook',
    on,
    secrets: [settings.url === undefined ? [url] : [], secret ?? []].flat(),
    send: (notice, signal) => post({ url, secret }, notice, signal),
  }
}

async function readSecret(
  file: string | undefined,
  variable: string | undefined,
  { variables, what }: { variables: Variables; what: string },
): Promise<string | undefined> {
  if (file !== undefined) {
    const value = (await readFile(file, 'utf8')).trim()
    if (value !== '') return value
    throw new Error(`notify: webhook: ${file} is empty`)
  }
  if (variable === undefined) return undefined
  const value = variables[variable]
  if (value) return value
  throw new Error(`notify: webhook: the variable ${variable} of its ${what} is not set`)
}

interface Address {
  readonly url: string
  readonly secret: string | undefined
}

async function post({ url, secret }: Address, notice: Notice, signal: AbortSignal): Promise<void> {
  const { request } = await import('undici')
  const answer = await request(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
    },
    body: JSON.stringify({ source: 'espalier', ...notice }),
    signal,
  })
  await answer.body.dump()
  if (answer.statusCode >= 300) throw new Error(`it answered ${answer.statusCode}`)
}

/** The notice as JSON on its standard input; its output is not looked at. */
function run(command: readonly string[], notice: Notice, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const [program, ...words] = command
    const child = spawn(program!, words, { stdio: ['pipe', 'ignore', 'ignore'], signal })
    child.on('error', reject)
    child.on('close', code => (code === 0 ? resolve() : reject(new Error(`it ended with ${code}`))))
    child.stdin.on('error', () => {})
    child.stdin.end(`${JSON.stringify(notice)}\n`)
  })
}
