/** The place of the first character that is not a space, tab or line break. */
export function behindLayout(text: string, from: number): number {
  let index = from
  while (index < text.length && isLayout(text.charCodeAt(index))) index++
  return index
}

const isLayout = (code: number): boolean =>
  code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
