import type { Unit } from './blocks.ts'
import { jsonUnit } from './json-units.ts'

const tag = '<|python_tag|>'

/** Llama 3's JSON behind a marker; several objects are set apart by semicolons. */
const tagged = jsonUnit({ open: [tag], separator: ';' })
/** The same as the whole output, without the marker. */
const bare = jsonUnit({ open: [], separator: ';' })

/** How an object begins that was meant as a call. */
const meant = /^\{\s*"name"\s*:\s*"[^"]{1,128}"\s*,\s*"(?:parameters|arguments)"\s*:/

/** Llama 3. An output that is plain JSON is a call only if it has a name and arguments. */
export const llamaUnit: Unit = {
  opens: [tag, '{'],
  closes: [],
  weak: ['{'],
  *read(source) {
    if (yield* source.next(tag)) return yield* tagged.read(source)
    if (source.position > 0) return { kind: 'text' }
    const beginning = yield* source.ahead(256)
    const attempt = yield* bare.read(source)
    if (attempt.kind === 'broken') return meant.test(beginning) ? attempt : { kind: 'text' }
    if (attempt.kind !== 'calls') return attempt
    const isCall = attempt.calls.every(call => call.kind === 'call')
    return isCall && hasArguments(beginning) ? attempt : { kind: 'text' }
  },
}

const hasArguments = (beginning: string): boolean =>
  /"(?:parameters|arguments)"\s*:/.test(beginning)
