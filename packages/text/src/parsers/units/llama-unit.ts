import type { Unit } from '../blocks.ts'
import { jsonUnit } from './json-units.ts'

/** Llama 3's JSON behind a marker; several objects are set apart by semicolons. */
export const llamaUnit: Unit = jsonUnit({ open: ['<|python_tag|>'], separator: ';' })

/** How an object begins that was meant as a call. */
const meant = /^\{\s*"name"\s*:\s*"[^"]{1,128}"\s*,\s*"(?:parameters|arguments)"\s*:/
const mentioned = /"(?:parameters|arguments)"\s*:/

const objects = jsonUnit({ open: [], separator: ';' })

/** A call of Llama without its marker. Plain JSON is a call only if it has a name and arguments. */
export const llamaOpening: Unit = {
  opens: ['{'],
  closes: [],
  weak: ['{'],
  *read(source) {
    const beginning = yield* source.ahead(256)
    const attempt = yield* objects.read(source)
    if (attempt.kind === 'broken' && meant.test(beginning)) return attempt
    const isCall =
      attempt.kind === 'calls' &&
      attempt.calls.every(call => call.kind === 'call') &&
      mentioned.test(beginning)
    return isCall ? attempt : { kind: 'text' }
  },
}
