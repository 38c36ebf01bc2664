import type { Unit } from '../blocks.ts'
import { broken, callWithArguments, isName } from '../call.ts'
import { scanJson } from '../json.ts'
import { markers } from '../markers.ts'
import { jsonUnit } from './json-units.ts'

const open = '[TOOL_CALLS]'
const args = '[ARGS]'
const callId = '[CALL_ID]'
const nameEnd = markers(args, open)
const list = jsonUnit({ open: [open] })

/** Mistral's two ways: a JSON list, or `NAME[ARGS]{…}`, which may carry an id. */
export const mistralUnit: Unit = {
  opens: [open],
  closes: [],
  *read(source) {
    // `[ARGS]` can only follow within the length of a name.
    const compact = yield* source.spot(nameEnd, { from: open.length })
    const head = compact?.marker === args ? compact.text : undefined
    if (head === undefined || /[[{]/.test(head.replace(callId, ''))) return yield* list.read(source)
    const [name = '', id] = head.trim().split(callId)
    if (!isName(name)) return broken(`${JSON.stringify(name.slice(0, 80))} is not a name`)
    source.skip(open.length + head.length + args.length)
    yield* source.spaces()
    const json = yield* scanJson(source)
    if (json.kind === 'broken') return broken(json.problem, name)
    const call = callWithArguments(name, json.text)
    if (call.kind === 'broken') return call
    return { kind: 'calls', calls: [id === undefined ? call : { ...call, id }] }
  },
}
