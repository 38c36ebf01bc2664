import { orderWords } from './rules.ts'

/** What a policy's words mean to a customer; `words` are those that could be a reason. */
export type Meaning =
  | { readonly kind: 'question'; readonly about: 'order' | 'name' }
  | { readonly kind: 'done' }
  | { readonly kind: 'refusal'; readonly words: readonly string[] }
  | { readonly kind: 'other' }

const refusing = ['sorry', 'cannot', 'no', 'not']

/** Understands what was said. */
export function understand(text: string): Meaning {
  const spoken = text.toLowerCase().split(/[^a-z]+/)
  if (text.includes('?')) {
    return { kind: 'question', about: spoken.includes('name') ? 'name' : 'order' }
  }
  if (spoken.some(word => refusing.includes(word))) {
    return { kind: 'refusal', words: [...new Set(spoken.filter(word => orderWords.has(word)))] }
  }
  return { kind: spoken.includes('done') ? 'done' : 'other' }
}
