import { nativePattern } from '../../patterns/pattern.ts'
import { type Fields, readFlag } from '../fields.ts'
import { type Normalizer, rewriteEach } from './rewriting.ts'
import { unicodeForm } from './unicode-form.ts'

const drop = (pattern: RegExp): Normalizer => rewriteEach(nativePattern(pattern), () => '')
const blank = (pattern: RegExp): Normalizer => rewriteEach(nativePattern(pattern), () => ' ')

/** Takes away every mark, whatever it stands on. */
export const stripAccents: Normalizer = drop(/\p{M}+/gu)

/** What the training of translation models did to control characters and odd spaces. */
export const nmt: readonly Normalizer[] = [
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it drops
  drop(/[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]+/gu),
  blank(/[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]/gu),
]

export const lowercase: Normalizer = rewriteEach(nativePattern(/./gsu), character =>
  character.toLowerCase(),
)

const CHINESE =
  /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu

/** BERT's steps, of which a file wants some. */
export function bertSteps(fields: Fields): readonly Normalizer[] {
  const wants = (name: string) => readFlag(fields[name], `${name} of a BertNormalizer`)
  const isLower = wants('lowercase')
  return [
    ...(wants('clean_text')
      ? [drop(/(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\ufffd]/gu), blank(/\p{White_Space}/gu)]
      : []),
    ...(wants('handle_chinese_chars')
      ? [rewriteEach(nativePattern(CHINESE), character => ` ${character} `)]
      : []),
    ...(((fields.strip_accents ?? null) === null ? isLower : wants('strip_accents'))
      ? [unicodeForm('NFD'), drop(/\p{Mn}+/gu)]
      : []),
    ...(isLower ? [lowercase] : []),
  ]
}
