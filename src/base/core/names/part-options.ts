import { type PartName, parsePartName, UnknownPartError } from './part-name.ts'

/** What an option of a named part may be: a number of some kind, a text, a switch or one of some words. */
export type OptionKind = keyof typeof numberKinds | 'text' | 'switch' | readonly string[]

/** Options by name, as they were read. */
export type OptionValues = Readonly<Record<string, number | string | boolean>>

/** The options that a part takes after its name. */
export interface PartShape {
  readonly options: Readonly<Record<string, OptionKind>>
  /** What may stand as its first item, without a name. */
  readonly variants?: readonly string[]
}

interface NumberKind {
  readonly wanted: string
  fits(number: number): boolean
}

const wholeFrom = (least: number): NumberKind => ({
  wanted: `a whole number from ${least} on`,
  fits: number => Number.isSafeInteger(number) && number >= least,
})

const numberKinds = {
  /** Zero of them is possible. */
  whole: wholeFrom(0),
  count: wholeFrom(1),
  /** At least 2, such as a number of repetitions. */
  several: wholeFrom(2),
  amount: { wanted: 'a number from 0 on', fits: number => number >= 0 },
  number: { wanted: 'a number', fits: () => true },
  share: { wanted: 'a number from 0 to 1', fits: number => number >= 0 && number <= 1 },
  'positive-share': {
    wanted: 'a share above 0 and up to 1',
    fits: number => number > 0 && number <= 1,
  },
} satisfies Record<string, NumberKind>

/** A part that was found by its name, with its options. */
export interface FoundPart<Factory> extends Pick<PartName, 'name' | 'variant'> {
  readonly factory: Factory
  readonly values: OptionValues
}

/** Finds the part that `NAME[:ITEM,…]` names and reads its options; errors list what is possible. */
export function findPart<Factory extends PartShape>(
  kind: string,
  text: string,
  factories: Readonly<Record<string, Factory>>,
): FoundPart<Factory> {
  const { name, variant, options } = parsePartName(text)
  const factory = Object.hasOwn(factories, name) ? factories[name] : undefined
  if (!factory) throw new UnknownPartError(kind, name, Object.keys(factories))
  const owner = `${kind} "${name}"`
  const { variants = [] } = factory
  if (variant !== undefined && !variants.includes(variant)) {
    const known = variants.length > 0 ? `. Known: ${variants.join(', ')}.` : ''
    throw new Error(`${owner} has no variant "${variant}"${known}`)
  }
  const values = Object.fromEntries(
    [...options].map(([key, value]) => {
      const of = Object.hasOwn(factory.options, key) ? factory.options[key] : undefined
      if (of !== undefined) return [key, readOption(`${owner}: ${key}`, of, value)]
      const known = Object.keys(factory.options).join(', ') || 'none'
      throw new Error(`${owner} has no option "${key}". Known: ${known}.`)
    }),
  )
  return { name, factory, values, ...(variant !== undefined && { variant }) }
}

function readOption(what: string, kind: OptionKind, text: string): number | string | boolean {
  const refuse = (wanted: string): never => {
    throw new Error(`${what} must be ${wanted}, not "${text}"`)
  }
  if (typeof kind === 'object') return kind.includes(text) ? text : refuse(kind.join(' or '))
  if (kind === 'text') return text === '' ? refuse('a text') : text
  if (kind === 'switch') {
    return text === 'true' || text === 'false' ? text === 'true' : refuse('true or false')
  }
  const { wanted, fits } = numberKinds[kind]
  const number = Number(text)
  return text !== '' && Number.isFinite(number) && fits(number) ? number : refuse(wanted)
}
