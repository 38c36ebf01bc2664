import type { Guard } from '../../../base/core/guard.ts'

/** Tokens between two checks, so that a long sample is not decoded at every token. */
const stride = 16

/** Stops a sample whose call can no longer become JSON. */
export function jsonGuard(): Guard {
  return {
    name: 'json',
    watch(sample) {
      if (sample.ids.length % stride !== 0) return false
      const text = sample.text()
      const call = text.lastIndexOf('{"name"')
      return call >= 0 && isImpossibleJson(text.slice(call))
    },
  }
}

/** Whether no JSON value can begin with this text; anything after a complete value is ignored. */
export function isImpossibleJson(text: string): boolean {
  const stack: ('{' | '[')[] = []
  let expects: 'value' | 'key' | 'colon' | 'comma' = 'value'
  let at = 0
  while (at < text.length) {
    const character = text[at]!
    if (/\s/.test(character)) {
      at++
      continue
    }
    if (expects === 'colon') {
      if (character !== ':') return true
      expects = 'value'
      at++
    } else if (expects === 'comma') {
      const open = stack.at(-1)
      if (character === ',') expects = open === '{' ? 'key' : 'value'
      else if (character === (open === '{' ? '}' : ']')) stack.pop()
      else return true
      if (stack.length === 0) return false
      at++
    } else if (character === '}' || character === ']') {
      const open = stack.pop()
      if (open !== (character === '}' ? '{' : '[') || text[at - 1] === ',') return true
      if (stack.length === 0) return false
      expects = 'comma'
      at++
    } else if (character === '"') {
      const end = endOfString(text, at)
      if (end === undefined) return false
      if (end < 0) return true
      at = end
      expects = expects === 'key' ? 'colon' : 'comma'
    } else if (expects === 'key') return true
    else if (character === '{' || character === '[') {
      stack.push(character)
      expects = character === '{' ? 'key' : 'value'
      at++
    } else {
      const word = /^[-+.\w]+/.exec(text.slice(at, at + 64))?.[0]
      if (word === undefined) return true
      const isLast = at + word.length === text.length
      if (!isLast && !/^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)$/.test(word))
        return true
      at += word.length
      expects = 'comma'
    }
  }
  return false
}

/** Where a string ends; `undefined` if it has not yet, -1 if it cannot. */
function endOfString(text: string, start: number): number | undefined {
  for (let at = start + 1; at < text.length; at++) {
    const character = text[at]!
    if (character === '"') return at + 1
    if (character === '\n') return -1
    if (character === '\\') at++
  }
  return undefined
}
