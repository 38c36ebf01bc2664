/** A tool's output as the policy sees it. */
export interface Shown {
  readonly text: string
  /** Characters that were cut off; 0 if all is shown. */
  readonly cut: number
}

/** A tool's result as text: strings as they are, everything else as JSON. */
export function toText(output: unknown): string {
  if (typeof output === 'string') return output
  return JSON.stringify(output ?? null) ?? String(output)
}

/** Shows at most `limit` characters, and says at their end what is missing. */
export function showAtMost(text: string, limit: number): Shown {
  if (text.length <= limit) return { text, cut: 0 }
  const room = Math.max(0, limit - noteOn(text.length).length)
  const kept = isHighSurrogate(text.charCodeAt(room - 1)) ? room - 1 : room
  const cut = text.length - kept
  return { text: `${text.slice(0, kept)}${noteOn(cut)}`.slice(0, limit), cut }
}

function noteOn(cut: number): string {
  return `\n[Error: output too long, ${cut} more characters not shown]`
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00
}
