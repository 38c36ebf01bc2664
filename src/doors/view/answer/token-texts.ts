import type { Tokenizer } from '@espalier/text/tokenizers'

/** The text of a token. */
export interface TokenText {
  /** `null` without a tokenizer. */
  readonly text: string | null
  readonly isControl: boolean
}

/** Writes tokens as text, each by itself. */
export interface TokenTexts {
  of(id: number): TokenText
  /** Several tokens as one text. */
  join(ids: Int32Array): string
}

/** The texts without a tokenizer: only ids. */
export const plainTexts: TokenTexts = {
  of: () => ({ text: null, isControl: false }),
  join: ids => [...ids].join(' '),
}

/** Texts by a tokenizer; each token is decoded once. Bytes that are no whole character are written in hex. */
export function makeTexts(tokenizer: Tokenizer): TokenTexts {
  const known = new Map<number, TokenText>()
  const controls = new Set(tokenizer.controls.map(({ id }) => id))
  const read = (id: number): TokenText => {
    const bytes = controls.has(id) ? undefined : tokenizer.bytesOf?.(id)
    const text = bytes ? fromBytes(bytes) : tokenizer.decode([id])
    return { text: text || (tokenizer.tokenOf(id) ?? `#${id}`), isControl: controls.has(id) }
  }
  return {
    of(id) {
      const text = known.get(id) ?? read(id)
      known.set(id, text)
      return text
    },
    join: ids => tokenizer.decode(ids),
  }
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function fromBytes(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes)
  } catch {
    return `⟨${Buffer.from(bytes).toString('hex').toUpperCase()}⟩`
  }
}
