import { JsonScanner } from './json-scanner.ts'
import { Known, type Reader, type Source } from './source.ts'

/** A valid JSON value as it is written. */
export interface JsonValue {
  readonly kind: 'value'
  readonly text: string
  /** Where its keys and values, or its items, begin and end in the text. */
  readonly edges: readonly number[]
}

/** A JSON value as it stands in the text, or why there is none. */
export type JsonScan = JsonValue | { readonly kind: 'broken'; readonly problem: string }

/**
 * Reads one JSON value strictly. Strings are passed over as strings, so markers in them are not
 * seen; the first character that cannot be JSON ends the reading.
 */
export function scanJson(source: Source): Reader<JsonScan> {
  const collector = source.collect()
  const scanner = new JsonScanner()
  return source.when<JsonScan>(() => {
    source.feed(scanner)
    if (scanner.waits) return undefined
    const { problem, edges } = scanner
    const text = collector.text()
    collector.close()
    return new Known(
      problem === undefined ? { kind: 'value', text, edges } : { kind: 'broken', problem },
    )
  })
}

/** The value that a valid JSON text is. */
export function jsonValue(text: string): JsonValue {
  const scanner = new JsonScanner()
  scanner.read(text, 0, true)
  return { kind: 'value', text, edges: scanner.edges }
}

/** The members of a JSON object, each value as it is written; of equal keys the last. */
export function jsonMembers({ text, edges }: JsonValue): Map<string, string> {
  const members = new Map<string, string>()
  for (let index = 0; index < edges.length; index += 4) {
    const key = jsonText(text.slice(edges[index], edges[index + 1]))
    members.set(key, text.slice(edges[index + 2], edges[index + 3]))
  }
  return members
}

/** The items of a JSON array, each as it is written. */
export function jsonItems({ text, edges }: JsonValue): string[] {
  const items: string[] = []
  for (let index = 0; index < edges.length; index += 2) {
    items.push(text.slice(edges[index], edges[index + 1]))
  }
  return items
}

/** The text that a valid JSON string stands for. */
export function jsonText(string: string): string {
  return string.includes('\\') ? (JSON.parse(string) as string) : string.slice(1, -1)
}

/** Whether the text is one JSON object and nothing else. */
export function isJsonObject(text: string): boolean {
  return text.startsWith('{') && isJson(text)
}

/** Whether the text is one JSON value and nothing else. */
export function isJson(text: string): boolean {
  const scanner = new JsonScanner()
  return scanner.read(text, 0, true) === text.length && scanner.problem === undefined
}
