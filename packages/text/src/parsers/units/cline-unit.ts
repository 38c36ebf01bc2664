import type { ToolDefinition } from '../../message.ts'
import type { Unit, UnitResult } from '../blocks.ts'
import { broken, callWithValues } from '../call.ts'
import { markers } from '../markers.ts'
import type { Reader, Source } from '../source.ts'

const opens = [...'abcdefghijklmnopqrstuvwxyz'].map(letter => `<${letter}`)
const end = markers('>')
const isTag = (text: string): boolean => /^[a-z][a-z0-9_]{0,63}$/.test(text)

/** Tags of documents and of thinking, which are not names of tools. */
const documents: ReadonlySet<string> = new Set(
  `a abbr article aside b blockquote body br button code dd details div dl dt em footer form h1 h2 h3
  h4 h5 h6 head header hr html i iframe img input kbd label li link main mark meta nav ol option p
  pre q s script section select small span strong style sub summary sup svg table tbody td template
  textarea tfoot th thead think thinking thought title tr u ul video xml`.split(/\s+/),
)

/**
 * Cline's tags: `<tool_name><key>text</key>…</tool_name>`, every value text without its edges.
 * No marker introduces them, so a broken one counts as a call only if it names an offered tool.
 */
export function clineUnit(schemas: readonly ToolDefinition[]): Unit {
  const offered = new Set(schemas.map(schema => schema.function.name))
  return {
    opens,
    closes: [],
    weak: opens,
    *read(source) {
      const name = yield* readTag(source)
      const known = name !== undefined && (offered.has(name) || !documents.has(name))
      if (!known) return { kind: 'text' } satisfies UnitResult
      const values = yield* readPairs(source, name)
      if (typeof values !== 'string') {
        return { kind: 'calls', calls: [callWithValues(name, values)] } satisfies UnitResult
      }
      return offered.has(name) ? broken(values, name) : ({ kind: 'text' } satisfies UnitResult)
    },
  }
}

function* readTag(source: Source): Reader<string | undefined> {
  if (!/^<[a-z]/.test(yield* source.ahead(2))) return undefined
  source.skip(1)
  const head = yield* source.near(end, 64)
  if (!head || !isTag(head.text)) return undefined
  source.skip(1)
  return head.text
}

function* readPairs(source: Source, name: string): Reader<Map<string, string> | string> {
  const values = new Map<string, string>()
  for (;;) {
    yield* source.spaces()
    if (values.size > 0 && (yield* source.take(`</${name}>`))) return values
    const key = yield* readTag(source)
    if (key === undefined || key === name) {
      return source.finished
        ? `the call is cut off before </${name}>`
        : 'there is text where a parameter belongs'
    }
    const raw = source.collect()
    if ((yield* source.until(markers(`</${key}>`))) === undefined) {
      return `a parameter is cut off before </${key}>`
    }
    values.set(key, JSON.stringify(raw.text().trim()))
    raw.close()
    source.skip(key.length + 3)
  }
}
