import { orderWords } from './rules.ts'

/** What a policy's words mean to a customer; `words` are those that can be said of an order. */
export type Meaning =
  | { readonly kind: 'question'; readonly about: 'order' | 'name' }
  | { readonly kind: 'done' }
  | { readonly kind: 'refusal'; readonly words: readonly string[] }
  | { readonly kind: 'answer'; readonly words: readonly string[] }
  | { readonly kind: 'other' }

const refusing = ['sorry', 'cannot', 'no', 'not']

/** Understands what was said. */
export function understand(text: string): Meaning {
  const spoken = text.toLowerCase().split(/[^a-z]+/)
  if (text.includes('?')) {
    return { kind: 'question', about: spoken.includes('name') ? 'name' : 'order' }
  }
  const words = [...new Set(spoken.filter(word => orderWords.has(word)))]
  if (spoken.some(word => refusing.includes(word))) return { kind: 'refusal', words }
  if (spoken.includes('done')) return { kind: 'done' }
  return words.length > 0 ? { kind: 'answer', words } : { kind: 'other' }
}
