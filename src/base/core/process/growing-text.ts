import { knownSecrets, withoutSecrets } from './secrets.ts'

/** A text that is sent piece by piece without the secrets that are known, also if pieces split one. */
export interface GrowingText {
  /** What may be sent once this piece is there too; the beginning of a secret waits for what follows. */
  add(piece: string): string
  /** The rest. */
  end(): string
}

/** Begins to send a text. */
export function openGrowingText(): GrowingText {
  let held = ''
  return {
    add(piece) {
      if (held === '' && knownSecrets().length === 0) return piece
      held += piece
      const settled = settledLength(held)
      const shown = withoutSecrets(held.slice(0, settled))
      held = held.slice(settled)
      return shown
    },
    end() {
      const shown = withoutSecrets(held)
      held = ''
      return shown
    },
  }
}

/** What may be shown of a text that is still growing. */
export function withoutSecretsSoFar(text: string): string {
  return withoutSecrets(text.slice(0, settledLength(text)))
}

/** How much of a text no further character can make a part of a secret. */
function settledLength(text: string): number {
  const secrets = knownSecrets()
  let settled = text.length
  let left = text
  for (const secret of secrets) {
    // If a whole secret stands, neither it nor a shorter one begins anew.
    left = left.replaceAll(secret, gap => '\0'.repeat(gap.length))
    settled = Math.min(settled, beginningAt(left, secret))
  }
  // A whole secret that reaches into what is held back is held back with it.
  for (let before = text.length; before !== settled; ) {
    before = settled
    for (const secret of secrets) settled = Math.min(settled, overlapAt(text, secret, settled))
  }
  return settled
}

/** Where the end of a text is the beginning of a secret; its length if nowhere. */
function beginningAt(text: string, secret: string): number {
  const first = secret[0]!
  let at = text.indexOf(first, Math.max(0, text.length - secret.length + 1))
  while (at >= 0) {
    if (secret.startsWith(text.slice(at))) return at
    at = text.indexOf(first, at + 1)
  }
  return text.length
}

/** Where a secret begins that lies on both sides of a place; the place itself if none does. */
function overlapAt(text: string, secret: string, place: number): number {
  const from = Math.max(0, place - secret.length + 1)
  const at = text.slice(from, place + secret.length - 1).indexOf(secret)
  return at < 0 ? place : from + at
}
