import { createInterface } from 'node:readline/promises'
import { openSpeaker } from '../../run/settings/open-speaker.ts'
import type { TauServices } from '../tau/factory.ts'
import { patientSpeaker } from './patient-speaker.ts'

/** What tau-bench needs from the program: models that play users, a person at the terminal, warnings. */
export function tauServices(): TauServices {
  let asking: Promise<unknown> = Promise.resolve()
  return {
    openSpeaker: async text => patientSpeaker(await openSpeaker(text)),
    ask: (text, { signal }) => {
      // One question at a time, since one person answers for all conversations.
      const answer = asking.then(() => askPerson(text, signal))
      asking = answer.catch(() => undefined)
      return answer
    },
    warn: text => void process.stderr.write(`${text}\n`),
  }
}

let lines: AsyncIterator<string> | undefined

/** Shows a text on stderr and takes the next line of stdin. */
async function askPerson(text: string, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  const input: Partial<Pick<typeof process.stdin, 'ref' | 'unref'>> = process.stdin
  lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  process.stderr.write(`\n${text}\n> `)
  input.ref?.()
  const { value, done } = await lines.next()
  // Reading stdin must not keep the program alive.
  input.unref?.()
  if (done) throw new Error('nobody is there to answer: the input has ended')
  return value
}
