import type { Transition } from '../../core/environment.ts'
import { Failure } from '../../core/failure.ts'
import type { Message } from '../../core/message.ts'

/** Characters that a world may say at one time: more than any context holds. */
const mostCharacters = 2 ** 24

/** The roles that a message may have; templates leave out what has another. */
const roles: readonly unknown[] = [
  'system',
  'developer',
  'user',
  'assistant',
  'tool',
] satisfies readonly Message['role'][]

/** Throws if a world says too much, or something that is not a message: not the policy's fault. */
export function checkSaid(messages: readonly Message[]): void {
  if (!Array.isArray(messages)) throw broken(`said what is no list of messages: ${shown(messages)}`)
  let characters = 0
  for (const message of messages as readonly Message[]) {
    const { role, content } = message ?? {}
    if (typeof role !== 'string' || !isContent(content)) {
      throw broken(`said what is no message: ${shown(message)}`)
    }
    if (!roles.includes(role)) {
      throw broken(`said something as ${shown(role)}; the roles are ${roles.join(', ')}`)
    }
    characters += typeof content === 'string' ? content.length : 0
  }
  if (characters <= mostCharacters) return
  throw broken(`said ${characters} characters at one time; ${mostCharacters} are read`)
}

/** Throws if a world's answer to a step is not a valid transition. */
export function checkTransition(transition: Transition): void {
  const { observed = [], reward, kind } = transition ?? {}
  if (kind !== 'continue' && kind !== 'end') {
    throw broken(`answered with what neither continues nor ends: ${shown(transition)}`)
  }
  checkSaid(observed)
  if (kind === 'continue' && observed.length === 0) throw broken('goes on without saying anything')
  if (reward === undefined || Number.isFinite(reward)) return
  throw broken(`rewarded a step with ${String(reward)}, which is no number`)
}

function isContent(content: unknown): boolean {
  return typeof content === 'string' || content === null || Array.isArray(content)
}

function broken(what: string): Failure {
  return new Failure('environment', { cause: new Error(`The world ${what}.`) })
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 200)
}
