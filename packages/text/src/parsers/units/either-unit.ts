import { standsHere, type Unit } from '../blocks.ts'

/** Calls that may be written in two ways: the second where one of `opens` stands. */
export function eitherUnit(first: Unit, second: Unit, opens: readonly string[]): Unit {
  return {
    opens: [...first.opens, ...opens],
    closes: first.closes,
    weak: opens,
    *read(source) {
      const other = yield* standsHere(source, opens)
      return yield* (other === undefined ? first : second).read(source)
    },
  }
}
