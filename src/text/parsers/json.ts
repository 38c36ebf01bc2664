import { JsonScanner } from './json-scanner.ts'
import { behindLayout } from './layout.ts'
import { Known, type Reader, type Source } from './source.ts'

/** A JSON value as it stands in the text, or why there is none. */
export type JsonScan =
  | { readonly kind: 'value'; readonly text: string }
  | { readonly kind: 'broken'; readonly problem: string }

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
    const { problem } = scanner
    const text = collector.text()
    collector.close()
    return new Known(problem === undefined ? { kind: 'value', text } : { kind: 'broken', problem })
  })
}

/** The members of a valid JSON object, each value as it is written; of equal keys the last. */
export function jsonMembers(object: string): Map<string, string> {
  const members = new Map<string, string>()
  const scanner = new JsonScanner()
  for (let index = behindLayout(object, 1); object[index] === '"'; ) {
    const keyEnd = scanner.read(object, index, true)
    const start = behindMark(object, keyEnd)
    const end = scanner.read(object, start, true)
    members.set(jsonText(object.slice(index, keyEnd)), object.slice(start, end))
    index = behindMark(object, end)
  }
  return members
}

/** The items of a valid JSON array, each as it is written. */
export function jsonItems(array: string): string[] {
  const items: string[] = []
  const scanner = new JsonScanner()
  for (let index = behindLayout(array, 1); index < array.length && array[index] !== ']'; ) {
    const end = scanner.read(array, index, true)
    items.push(array.slice(index, end))
    index = behindMark(array, end)
  }
  return items
}

/** The text that a valid JSON string stands for. */
export function jsonText(string: string): string {
  return string.includes('\\') ? (JSON.parse(string) as string) : string.slice(1, -1)
}

/** Behind the comma, colon or bracket that follows, and the layout around it. */
const behindMark = (text: string, from: number): number =>
  behindLayout(text, behindLayout(text, from) + 1)

/** Whether the text is one JSON object and nothing else. */
export function isJsonObject(text: string): boolean {
  return text.startsWith('{') && isJson(text)
}

/** Whether the text is one JSON value and nothing else. */
export function isJson(text: string): boolean {
  const scanner = new JsonScanner()
  return scanner.read(text, 0, true) === text.length && scanner.problem === undefined
}
