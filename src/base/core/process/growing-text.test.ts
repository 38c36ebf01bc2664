import fc from 'fast-check'
import { expect, it } from 'vitest'
import { openGrowingText, withoutSecretsSoFar } from './growing-text.ts'
import { keepSecret, withoutSecrets } from './secrets.ts'

keepSecret('plum-plum-pear')
keepSecret('pear-and-"quince"')
keepSecret('plum-plum-pear-and-more')

// Tests of one process share their secrets: ⁂ and ⁘ are in none of another file.
const texts = [
  'nothing to hide, plum-plum',
  'it is plum-plum-pear.',
  'plum-plum-plum-pear plum-plum-pear',
  'plum-plum-pear-and-more, plum-plum-pear-and-less',
  'plum-plum-pear-and-"quince" pear-and-"quince',
]

function pieces(text: string, size: number): string[] {
  return Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
    text.slice(index * size, (index + 1) * size),
  )
}

it('H4: a text that is sent piece by piece is what it is when sent whole, however it is cut', () => {
  for (const text of texts) {
    for (const size of [1, 2, 3, 5, 8, 13, 100]) {
      const growing = openGrowingText()
      const sent = pieces(text, size).map(piece => growing.add(piece))
      expect([...sent, growing.end()].join('')).toBe(withoutSecrets(text))
    }
  }
})

it('H4: neither secrets that overlap nor those that repeat themselves tell anything between pieces', () => {
  for (const secret of ['00000000', '010010010', '1001001100', '0101010101010']) keepSecret(secret)
  const piece = fc.string({ unit: fc.constantFrom('0', '1'), maxLength: 12 })
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.constant('00000000'))), given => {
      const growing = openGrowingText()
      const sent = given.map(each => growing.add(each))
      expect([...sent, growing.end()].join('')).toBe(withoutSecrets(given.join('')))
    }),
  )
})

it('does not hold back a secret that is said again and again', () => {
  keepSecret('********')
  const growing = openGrowingText()
  const sent = Array.from({ length: 80 }, () => growing.add('*'))
  expect(sent.join('')).toBe('[redacted]'.repeat(10))
})

it('holds back no more than what may be the beginning of a secret', () => {
  const growing = openGrowingText()
  expect(growing.add('⁂plump p')).toBe('⁂plump ')
  expect(growing.add('⁘')).toBe('p⁘')
  expect(growing.end()).toBe('')
})

it('H4: what is shown of a growing text never takes back or tells a part of a secret', () => {
  const text = '⁂⁘ plum-plum-pear.'
  const shown = Array.from({ length: text.length + 1 }, (_, end) =>
    withoutSecretsSoFar(text.slice(0, end)),
  )
  expect(new Set(shown)).toEqual(new Set(['', '⁂', '⁂⁘', '⁂⁘ ', '⁂⁘ [redacted].']))
})
