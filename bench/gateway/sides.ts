import { type Agent, request } from 'undici'
import type { Program } from './programs.ts'

/** How long the bodies are. */
export type Size = '1 KB' | '1 MB'

/** One kind of request. */
export interface Asking {
  readonly size: Size
  readonly isStream: boolean
}

/** Milliseconds until the first byte of an answer and until its end. */
export interface Times {
  readonly first: number
  readonly whole: number
}

/** One way to the same model. */
export interface Side {
  readonly name: string
  readonly program: Program
  /** Makes what so many requests are going to need, so that none of it is measured. */
  prepare(asking: Asking, count: number): Promise<void>
  ask(asking: Asking): Promise<Times>
}

/** The model's fixed answer. */
export const said =
  'The order was delivered on Monday and can be returned until the end of the month.'
const filler = 'Where is the parcel that was sent on Monday, and who signed for it at the door? '

/** Long conversations held side by side. */
const conversations = 8

/** A conversation of about so many bytes: a long one has many messages, as agents' do. */
function messagesOf(size: Size): object[] {
  if (size === '1 KB') return [{ role: 'user', content: filler.repeat(11) }]
  return Array.from({ length: 101 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: filler.repeat(124),
  }))
}

const bodyOf = (messages: readonly object[], stream: boolean): Buffer =>
  Buffer.from(JSON.stringify({ model: 'bench', stream, messages }))

/** Asks a server directly, with the same body each time. */
export function plainSide(name: string, program: Program, agent: Agent): Side {
  const bodies = new Map<string, Buffer>()
  const keyOf = ({ size, isStream }: Asking): string => `${size} ${isStream}`
  return {
    name,
    program,
    async prepare(asking) {
      bodies.set(keyOf(asking), bodyOf(messagesOf(asking.size), asking.isStream))
    },
    ask(asking) {
      const url = `${program.url}/v1/chat/completions`
      return timed(url, bodies.get(keyOf(asking))!, { agent, key: 'sk-bench' })
    },
  }
}

interface Conversation {
  readonly key: string
  readonly messages: object[]
  readonly bodies: Buffer[]
}

/**
 * Asks in attempts. Short bodies begin one each; a long body is an attempt's history that was sent
 * before, with a turn more, as agents send theirs.
 */
export function gatewaySide(program: Program, agent: Agent): Side {
  const path = `${program.url}/v1/chat/completions`
  const keys: string[] = []
  const long: Conversation[] = []
  const short = {
    whole: bodyOf(messagesOf('1 KB'), false),
    streamed: bodyOf(messagesOf('1 KB'), true),
  }
  return {
    name: 'gateway',
    program,
    async prepare({ size, isStream }, count) {
      while (size === '1 KB' && keys.length < count) keys.push(await openAttempt(program, agent))
      if (size === '1 KB') return
      while (long.length < conversations) long.push(await openLong(program, agent))
      for (const each of long) {
        while (each.bodies.length < 2 + (2 * count) / conversations) goOn(each, isStream)
      }
    },
    async ask({ size, isStream }) {
      if (size === '1 KB') {
        return timed(path, isStream ? short.streamed : short.whole, { agent, key: keys.pop()! })
      }
      const known = long.shift()!
      const times = await timed(path, known.bodies.shift()!, { agent, key: known.key })
      long.push(known)
      return times
    },
  }
}

/** Adds what was said and a question to a conversation. */
function goOn({ messages, bodies }: Conversation, isStream: boolean): void {
  messages.push({ role: 'assistant', content: said }, { role: 'user', content: 'And?' })
  bodies.push(bodyOf(messages, isStream))
}

async function openLong(program: Program, agent: Agent): Promise<Conversation> {
  const key = await openAttempt(program, agent)
  const messages = messagesOf('1 MB')
  await timed(`${program.url}/v1/chat/completions`, bodyOf(messages, false), { agent, key })
  return { key, messages, bodies: [] }
}

let attempts = 0

async function openAttempt({ url }: Program, dispatcher: Agent): Promise<string> {
  const { body } = await request(`${url}/attempts`, {
    method: 'POST',
    dispatcher,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ task: `bench ${attempts++}` }),
  })
  return ((await body.json()) as { token: string }).token
}

async function timed(
  url: string,
  body: Buffer,
  { agent, key }: { readonly agent: Agent; readonly key: string },
): Promise<Times> {
  const started = performance.now()
  const answer = await request(url, {
    method: 'POST',
    dispatcher: agent,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body,
  })
  let first = 0
  for await (const _ of answer.body) first ||= performance.now() - started
  if (answer.statusCode !== 200) throw new Error(`${url} answered ${answer.statusCode}`)
  return { first, whole: performance.now() - started }
}

/** Asks so often, so many at one time. */
export async function repeat(
  side: Side,
  asking: Asking,
  { count, atOnce }: { readonly count: number; readonly atOnce: number },
): Promise<Times[]> {
  const times: Times[] = []
  let left = count
  const worker = async (): Promise<void> => {
    while (left-- > 0) times.push(await side.ask(asking))
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker))
  return times
}
