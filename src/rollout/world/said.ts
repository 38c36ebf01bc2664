import type { Transition } from '../../core/environment.ts'
import { Failure } from '../../core/failure.ts'
import type { Message } from '../../core/message.ts'

/** Characters that a world may say at one time: more than any context holds. */
const mostCharacters = 2 ** 24

/** Throws if a world says too much, or something that is not a message: not the policy's fault. */
export function checkSaid(messages: readonly Message[]): void {
  let characters = 0
  for (const message of messages) {
    const { role, content } = message ?? {}
    if (typeof role !== 'string' || !isContent(content)) {
      throw broken(`said what is no message: ${shown(message)}`)
    }
    characters += typeof content === 'string' ? content.length : 0
  }
  if (characters <= mostCharacters) return
  throw broken(`said ${characters} characters at one time; ${mostCharacters} are read`)
}

/** Throws if a world's answer to a step is not a valid transition. */
export function checkTransition({ observed = [], reward, kind }: Transition): void {
  if (kind === 'continue' && observed.length === 0) throw broken('goes on without saying anything')
  checkSaid(observed)
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
