/** A block of code between fences. */
export interface Fenced {
  /** The first word behind the opening fence, in small letters; '' if there is none. */
  readonly tag: string
  readonly code: string
}

/**
 * The first complete fenced block with one of these tags. Read line by line, so that what stands
 * between one block's end and the next one's beginning is never taken for code.
 */
export function firstFenced(text: string, tags: ReadonlySet<string>): Fenced | undefined {
  let open: { readonly ticks: number; readonly tag: string; readonly lines: string[] } | undefined
  for (const line of text.split('\n')) {
    const { ticks, rest } = readFence(line)
    if (!open) {
      if (ticks >= 3 && !rest.includes('`')) open = { ticks, tag: tagOf(rest), lines: [] }
    } else if (ticks >= open.ticks && rest === '') {
      if (tags.has(open.tag)) return { tag: open.tag, code: open.lines.join('\n') }
      open = undefined
    } else open.lines.push(line)
  }
  return undefined
}

function readFence(line: string): { readonly ticks: number; readonly rest: string } {
  const trimmed = line.trim()
  let ticks = 0
  while (trimmed[ticks] === '`') ticks++
  return { ticks, rest: trimmed.slice(ticks).trim() }
}

function tagOf(rest: string): string {
  return rest.split(/\s/, 1)[0]!.toLowerCase()
}
