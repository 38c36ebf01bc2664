/** The text inside the last balanced `\boxed{…}`, if there is one. */
export function boxedIn(text: string): string | undefined {
  const start = text.lastIndexOf('\\boxed{')
  if (start < 0) return undefined
  const from = start + '\\boxed{'.length
  let depth = 1
  for (let at = from; at < text.length; at++) {
    const character = text[at]
    if (character === '\\') at++
    else if (character === '{') depth++
    else if (character === '}' && --depth === 0) return text.slice(from, at).trim()
  }
  return undefined
}

/**
 * The final answer in a text: what is boxed, else what follows the last `####`, else all of it,
 * trimmed.
 */
export function finalAnswerIn(text: string): string {
  const boxed = boxedIn(text)
  if (boxed !== undefined) return boxed
  const mark = text.lastIndexOf('####')
  return (mark < 0 ? text : text.slice(mark + 4)).trim()
}

// Nothing after a quantifier can fail, so that matching is linear.
const number =
  /(?<![\w.])(?<sign>[-+−]?)(?:(?<whole>\d+(?:,\d+)*)(?<part>\.\d+)?|(?<fraction>\.\d+))(?<power>[eE][-+]?\d+)?/g

/** The last number in a text, thousands separators read; `undefined` if there is none. */
export function lastNumberIn(text: string): number | undefined {
  const found = [...text.matchAll(number)].at(-1)?.groups
  if (!found) return undefined
  const { sign = '', whole = '0', part = '', fraction = '', power = '' } = found
  const groups = whole.split(',')
  const isGrouped = groups[0]!.length <= 3 && groups.slice(1).every(group => group.length === 3)
  // Commas that do not separate thousands separate the numbers of a list: the last one counts.
  const digits = isGrouped ? groups.join('') : groups.at(-1)!
  const isNegative = sign !== '' && sign !== '+' && (isGrouped || groups.length === 1)
  const value = Number(`${digits}${part}${fraction}${power}`)
  return Number.isFinite(value) ? (isNegative ? -value : value) : undefined
}

/** Whether two texts say the same, letter case, outer and repeated white space aside. */
export function isSameText(left: string, right: string): boolean {
  return plain(left) === plain(right)
}

function plain(text: string): string {
  return text.normalize('NFC').trim().split(/\s+/u).join(' ').toLowerCase()
}

/** Whether two numbers are equal to within `tolerance`, relative to the second but at least 1. */
export function isCloseTo(value: number, expected: number, tolerance: number): boolean {
  return Math.abs(value - expected) <= tolerance * Math.max(1, Math.abs(expected))
}

/** What a task's `answer` field says is right: one text or number, or several that all are. */
export function expectedAnswers(data: unknown): readonly string[] {
  const answer: unknown = typeof data === 'object' && data !== null && Reflect.get(data, 'answer')
  const answers: readonly unknown[] = Array.isArray(answer) ? answer : [answer]
  const texts = answers.flatMap(item =>
    typeof item === 'string' || typeof item === 'number' ? String(item) : [],
  )
  if (texts.length === answers.length && texts.length > 0) return texts
  throw new TypeError(
    'The task has no answer to compare with: give it an `answer` (a text, a number or a list of ' +
      'them), or choose another reward.',
  )
}

/** Whether the final answer in a text says the same as one of the task's answers. */
export function isExactAnswer(text: string, data: unknown): boolean {
  const answer = finalAnswerIn(text)
  return expectedAnswers(data).some(expected => isSameText(answer, expected))
}

/**
 * Whether the last number of the final answer equals, within `tolerance`, that of one of the
 * task's answers.
 */
export function isNumberAnswer(text: string, data: unknown, tolerance = 1e-6): boolean {
  const answers = expectedAnswers(data).map(expected => {
    const value = lastNumberIn(finalAnswerIn(expected))
    if (value === undefined) throw new TypeError(`The task's answer "${expected}" has no number.`)
    return value
  })
  const value = lastNumberIn(finalAnswerIn(text))
  return value !== undefined && answers.some(expected => isCloseTo(value, expected, tolerance))
}
