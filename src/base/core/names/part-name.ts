import { didYouMean } from './nearest.ts'

/**
 * A part as it is named on a command line or in a config, `NAME[:ITEM,…]`: the first item may be
 * a bare variant, every other one is `option=value`. A comma within an item is written `\,`.
 */
export interface PartName {
  readonly name: string
  readonly variant?: string
  readonly options: ReadonlyMap<string, string>
}

/** Thrown for a name that nothing is registered under. */
export class UnknownPartError extends Error {
  override name = 'UnknownPartError'

  constructor(kind: string, name: string, known: readonly string[]) {
    super(`No ${kind} called "${name}". Known: ${known.join(', ')}.${didYouMean(name, known)}`)
  }
}

/** Reads `NAME[:ITEM,…]`; throws saying which item it could not read. */
export function parsePartName(text: string): PartName {
  const colon = text.indexOf(':')
  const name = (colon < 0 ? text : text.slice(0, colon)).trim()
  if (!name) throw new Error(`"${text}" names nothing. Write NAME or NAME:option=value,…`)
  const items = colon < 0 ? [] : splitItems(text.slice(colon + 1), ',')
  const first = items[0]
  const isVariant = first !== undefined && !isOption.test(first)
  const options = new Map<string, string>()
  for (const item of isVariant ? items.slice(1) : items) addOption(options, item, text)
  if (!isVariant) return { name, options }
  if (!first.trim()) throw new Error(`"${text}" has an empty item. Write ${name}:option=value,…`)
  return { name, variant: first.trim(), options }
}

/** An option's name holds nothing that only paths have: `/data/a=b` is a path. */
const isOption = /^[^=/\\.]*=/

/** Splits a text at a comma or a space, if no backslash before it says that it belongs to an item. */
export function splitItems(text: string, mark: ',' | ' '): readonly string[] {
  return text
    .split(mark === ',' ? /(?<!\\),/ : /(?<!\\)\s+/)
    .map(item => item.replaceAll(`\\${mark}`, mark))
}

function addOption(options: Map<string, string>, item: string, text: string): void {
  const equals = item.indexOf('=')
  const key = item.slice(0, Math.max(0, equals)).trim()
  if (!key) {
    throw new Error(`"${item}" in "${text}" is not option=value; only the first item may be bare.`)
  }
  if (options.has(key)) throw new Error(`"${text}" gives ${key} twice.`)
  options.set(key, item.slice(equals + 1).trim())
}
