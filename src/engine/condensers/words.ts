/** Words that stand in every text and every question, and tell nothing of what they are about. */
const common = new Set(
  (
    'the of and to is was with for that by at from which are were his her their has had this in on a ' +
    'an as it its be or what who when where why how did does do many much may will can should would'
  ).split(' '),
)

/** The words of a text that tell what it is about. */
export function tellingWords(text: string): ReadonlySet<string> {
  return new Set(wordsOf(text).filter(word => !common.has(word)))
}

/** The words of a text, small and without punctuation. */
export function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}
