import { reasons } from './rules.ts'

/** What a policy's words mean to a customer. */
export type Meaning =
  | { readonly kind: 'question'; readonly about: 'order' | 'name' }
  | { readonly kind: 'done' }
  | { readonly kind: 'refusal'; readonly reasons: readonly string[] }
  | { readonly kind: 'other' }

const refusing = ['sorry', 'cannot', 'no', 'not']

/** Understands what was said. */
export function understand(text: string): Meaning {
  const words = text.toLowerCase().split(/[^a-z]+/)
  if (text.includes('?')) {
    return { kind: 'question', about: words.includes('name') ? 'name' : 'order' }
  }
  if (words.some(word => refusing.includes(word))) {
    return { kind: 'refusal', reasons: [...new Set(words.filter(word => reasons.has(word)))] }
  }
  return { kind: words.includes('done') ? 'done' : 'other' }
}
