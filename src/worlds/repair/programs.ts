import type { Json } from '../../base/core/ids.ts'

/** A small program that is right, and cases that say what right is. */
export interface Program {
  readonly name: string
  /** What it should do, in words. */
  readonly does: string
  readonly source: string
  /** Arguments, and what they should give; the first half is shown to whoever repairs it. */
  readonly cases: readonly { readonly given: readonly Json[]; readonly gives: Json }[]
}

/** A case from its arguments and its result. */
function when(given: readonly Json[], gives: Json): Program['cases'][number] {
  return { given, gives }
}

/** The programs that are broken for others to repair. */
export const programs: readonly Program[] = [
  {
    name: 'clamp',
    does: 'brings a number between the lowest and the highest that are allowed',
    source: `export default function clamp(value, low, high) {
  if (value < low) return low
  if (value > high) return high
  return value
}
`,
    cases: [
      when([5, 0, 3], 3),
      when([-2, 0, 3], 0),
      when([2, 0, 3], 2),
      when([9, 1, 8], 8),
      when([0, 1, 8], 1),
      when([4, 1, 8], 4),
    ],
  },
  {
    name: 'sum',
    does: 'adds up the numbers of a list',
    source: `export default function sum(numbers) {
  let total = 0
  for (let index = 0; index < numbers.length; index++) {
    total = total + numbers[index]
  }
  return total
}
`,
    cases: [
      when([[1, 2, 3]], 6),
      when([[4]], 4),
      when([[]], 0),
      when([[5, 5]], 10),
      when([[7, -7, 2]], 2),
      when([[9, 1, 1, 1]], 12),
    ],
  },
  {
    name: 'count',
    does: 'counts how often a letter stands in a text',
    source: `export default function count(text, letter) {
  let found = 0
  for (const each of text) {
    if (each === letter) found = found + 1
  }
  return found
}
`,
    cases: [
      when(['banana', 'a'], 3),
      when(['pear', 'z'], 0),
      when(['oo', 'o'], 2),
      when(['kiwi', 'i'], 2),
      when(['', 'i'], 0),
      when(['plum', 'p'], 1),
    ],
  },
  {
    name: 'leap',
    does: 'says whether a year is a leap year',
    source: `export default function leap(year) {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}
`,
    cases: [
      when([2024], true),
      when([2023], false),
      when([1900], false),
      when([2000], true),
      when([2100], false),
      when([1996], true),
      when([2022], false),
      when([1600], true),
    ],
  },
  {
    name: 'largest',
    does: 'gives the largest number of a list, and null for an empty one',
    source: `export default function largest(numbers) {
  let best = null
  for (const each of numbers) {
    if (best === null || each > best) best = each
  }
  return best
}
`,
    cases: [
      when([[3, 8, 2]], 8),
      when([[]], null),
      when([[-4, -9]], -4),
      when([[1, 2]], 2),
      when([[7]], 7),
      when([[0, -1, 5, 5]], 5),
    ],
  },
  {
    name: 'price',
    does: 'gives the price of so many pieces: from 10 pieces on each costs 1 less',
    source: `export default function price(pieces, each) {
  if (pieces >= 10) return pieces * (each - 1)
  return pieces * each
}
`,
    cases: [
      when([2, 5], 10),
      when([10, 5], 40),
      when([9, 3], 27),
      when([12, 2], 12),
      when([1, 7], 7),
      when([10, 10], 90),
    ],
  },
  {
    name: 'palindrome',
    does: 'says whether a text reads the same from both ends',
    source: `export default function palindrome(text) {
  for (let index = 0; index < text.length / 2; index++) {
    if (text[index] !== text[text.length - 1 - index]) return false
  }
  return true
}
`,
    cases: [
      when(['anna'], true),
      when(['pear'], false),
      when(['abca'], false),
      when(['level'], true),
      when(['x'], true),
      when(['aab'], false),
    ],
  },
  {
    name: 'change',
    does: 'gives the fewest coins of 5, 2 and 1 that make an amount',
    source: `export default function change(amount) {
  const fives = Math.floor(amount / 5)
  const rest = amount - fives * 5
  const twos = Math.floor(rest / 2)
  return fives + twos + (rest - twos * 2)
}
`,
    cases: [when([9], 3), when([5], 1), when([3], 2), when([0], 0), when([14], 4), when([6], 2)],
  },
]
