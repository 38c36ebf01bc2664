import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
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
export async function openChannel(
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
  const { kind } = settings
  const open = kind === 'webhook' ? settings.url : undefined
  const url =
    open ??
    (await readSecret(settings.urlFile, settings.urlVariable, { variables, kind, what: 'url' }))
  if (url === undefined) {
    throw new Error(`notify: ${kind} needs its address: urlFile or urlVariable`)
  }
  const secret =
    'secretFile' in settings || 'secretVariable' in settings
      ? await readSecret(settings.secretFile, settings.secretVariable, {
          variables,
          kind,
          what: 'secret',
        })
      : undefined
  return {
    name: kind,
    on,
    secrets: [...(open === undefined ? [url] : []), ...(secret === undefined ? [] : [secret])],
    send: (notice, signal) => post(dialects[kind]({ url, secret }, notice), signal),
  }
}

async function readSecret(
  file: string | undefined,
  variable: string | undefined,
  { variables, kind, what }: { variables: Variables; kind: string; what: string },
): Promise<string | undefined> {
  if (file !== undefined) {
    const value = (await readFile(file, 'utf8')).trim()
    if (value !== '') return value
    throw new Error(`notify: ${kind}: ${file} is empty`)
  }
  if (variable === undefined) return undefined
  const value = variables[variable]
  if (value) return value
  throw new Error(`notify: ${kind}: the variable ${variable} of its ${what} is not set`)
}

interface Address {
  readonly url: string
  readonly secret: string | undefined
}

interface Post {
  readonly url: string
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
}

type Dialect = (address: Address, notice: Notice) => Post

const dialects: Readonly<Record<'webhook' | 'slack' | 'dingtalk' | 'feishu', Dialect>> = {
  webhook: ({ url, secret }, notice) => ({
    url,
    body: { source: 'espalier', ...notice },
    ...(secret !== undefined && { headers: { authorization: `Bearer ${secret}` } }),
  }),
  slack: ({ url }, notice) => ({
    url,
    body: { text: `*${notice.title}*\n\`\`\`${notice.text}\`\`\`` },
  }),
  dingtalk: ({ url, secret }, notice) => ({
    url: secret === undefined ? url : signDingTalk(url, secret, Date.parse(notice.time)),
    body: {
      msgtype: 'markdown',
      markdown: {
        title: notice.title.slice(0, 64),
        text: `### ${notice.title}\n\n\`\`\`\n${notice.text}\n\`\`\``,
      },
    },
  }),
  feishu: ({ url, secret }, notice) => ({
    url,
    body: {
      ...(secret !== undefined && signFeishu(secret, Math.floor(Date.parse(notice.time) / 1000))),
      msg_type: 'text',
      content: { text: `${notice.title}\n${notice.text}` },
    },
  }),
}

/** DingTalk signs "milliseconds\nsecret" with the secret, and takes both in the address. */
export function signDingTalk(url: string, secret: string, milliseconds: number): string {
  const sign = createHmac('sha256', secret).update(`${milliseconds}\n${secret}`).digest('base64')
  const joint = url.includes('?') ? '&' : '?'
  return `${url}${joint}timestamp=${milliseconds}&sign=${encodeURIComponent(sign)}`
}

/** Feishu signs nothing with the key "seconds\nsecret", and takes both in the body. */
export function signFeishu(secret: string, seconds: number): { timestamp: string; sign: string } {
  const sign = createHmac('sha256', `${seconds}\n${secret}`).update('').digest('base64')
  return { timestamp: String(seconds), sign }
}

/** DingTalk and Feishu answer 200 even for errors, which are in the body. */
async function post({ url, body, headers }: Post, signal: AbortSignal): Promise<void> {
  const { request } = await import('undici')
  const answer = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal,
  })
  const text = (await answer.body.text()).slice(0, 2000)
  if (answer.statusCode >= 300) throw new Error(`it answered ${answer.statusCode}`)
  const code = /"(?:errcode|code|StatusCode)"\s*:\s*(-?\d+)/.exec(text)?.[1]
  if (code !== undefined && code !== '0') throw new Error(`it refused with code ${code}`)
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
