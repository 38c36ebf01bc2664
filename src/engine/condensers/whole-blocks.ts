/** A part of a text: a block that was condensed before, or what stands between blocks. */
export interface TextPart {
  readonly text: string
  readonly isBlock: boolean
}

/** Cuts a text around the blocks with these numbers; joined, the parts are the text again. */
export function wholeBlocks(text: string, numbers: ReadonlySet<number>): readonly TextPart[] {
  const parts: TextPart[] = []
  let end = 0
  for (const { start, close } of openings(text, numbers)) {
    if (start < end) continue
    const last = text.indexOf(close, start)
    if (last < 0) continue
    if (start > end) parts.push({ text: text.slice(end, start), isBlock: false })
    end = last + close.length
    parts.push({ text: text.slice(start, end), isBlock: true })
  }
  if (end < text.length) parts.push({ text: text.slice(end), isBlock: false })
  return parts
}

/** Where blocks begin. A number that is never closed is given once only, so that the search stays linear. */
function* openings(text: string, numbers: ReadonlySet<number>) {
  const unclosed = new Set<string>()
  for (const { index: start, 1: digits } of text.matchAll(/<block_(\d{1,9})>/g)) {
    const close = `</block_${digits}>`
    if (!numbers.has(Number(digits)) || unclosed.has(close)) continue
    if (text.indexOf(close, start) < 0) unclosed.add(close)
    else yield { start, close }
  }
}
