import type { TokenPage } from '../../src/doors/view/trajectory-shapes.ts'
import { formatFixed, formatNumber } from '../data/format.ts'

/** What tokens can be coloured by. */
export const colourings = ['origin', 'mask', 'logprob', 'entropy', 'advantage', 'version'] as const
export type Colouring = (typeof colourings)[number]

export const colouringTitles: Readonly<Record<Colouring, string>> = {
  origin: 'Origin',
  mask: 'Trained',
  logprob: 'Log-probability',
  entropy: 'Entropy',
  advantage: 'Advantage',
  version: 'Policy version',
}

const originNames = ['prompt', 'observed', 'sampled'] as const

/** A colour and its strength, from 0 to 1; the theme decides how that looks. */
export interface Shade {
  readonly hue: 'accent' | 'counter' | 'muted'
  readonly strength: number
}

/** The colour of one token; undefined if the colouring does not apply to it. */
export function shadeOf(page: TokenPage, at: number, by: Colouring): Shade | undefined {
  const isSampled = page.origins[at] === 2
  switch (by) {
    case 'origin':
      return isSampled
        ? { hue: 'accent', strength: 0.32 }
        : page.origins[at] === 1
          ? { hue: 'muted', strength: 0.22 }
          : undefined
    case 'mask':
      return page.trained[at] ? { hue: 'accent', strength: 0.4 } : undefined
    case 'logprob':
      return scaled(page.logprobs[at], 'counter', value => Math.min(1, -value / 5))
    case 'entropy':
      return scaled(page.entropies[at], 'counter', value => Math.min(1, value / 2.5))
    case 'advantage': {
      const value = page.advantages[at] ?? null
      if (value === null || value === 0) return undefined
      return {
        hue: value > 0 ? 'accent' : 'counter',
        strength: Math.min(1, Math.abs(value) / 2) * 0.6 + 0.1,
      }
    }
    default: {
      const version = page.versions[at]
      return version
        ? {
            hue: version[0] % 2 === 0 ? 'accent' : 'counter',
            strength: 0.2 + (version[0] % 4) * 0.1,
          }
        : undefined
    }
  }
}

function scaled(
  value: number | null | undefined,
  hue: Shade['hue'],
  strength: (value: number) => number,
): Shade | undefined {
  if (value === null || value === undefined) return undefined
  return { hue, strength: 0.06 + 0.6 * strength(value) }
}

/** What the colours mean, in order. */
export function legendOf(
  by: Colouring,
): readonly { readonly text: string; readonly shade: Shade | undefined }[] {
  const step = (text: string, hue: Shade['hue'], strength: number) => ({
    text,
    shade: { hue, strength },
  })
  switch (by) {
    case 'origin':
      return [
        { text: 'prompt', shade: undefined },
        step('observed', 'muted', 0.22),
        step('sampled', 'accent', 0.32),
      ]
    case 'mask':
      return [{ text: 'context', shade: undefined }, step('trained', 'accent', 0.4)]
    case 'logprob':
      return [
        step('p = 1', 'counter', 0.06),
        step('p = 0.37', 'counter', 0.18),
        step('p = 0.05', 'counter', 0.42),
        step('p < 0.01', 'counter', 0.66),
      ]
    case 'entropy':
      return [
        step('0 nats', 'counter', 0.06),
        step('1', 'counter', 0.3),
        step('2.5 or more', 'counter', 0.66),
      ]
    case 'advantage':
      return [
        step('−2', 'counter', 0.7),
        { text: 'not trained, or 0', shade: undefined },
        step('+2', 'accent', 0.7),
      ]
    default:
      return [
        step('even', 'accent', 0.3),
        step('odd', 'counter', 0.3),
        { text: 'not sampled', shade: undefined },
      ]
  }
}

/** What is known of a token, line by line. */
export function linesOf(page: TokenPage, at: number): readonly (readonly [string, string])[] {
  const version = page.versions[at]
  const logprob = page.logprobs[at]
  const lines: (readonly [string, string])[] = [
    ['place', `${page.offset + at} of ${page.total}`],
    ['id', String(page.ids[at])],
    ['origin', originNames[page.origins[at]!]!],
    ['trained', page.trained[at] ? 'yes' : 'no'],
  ]
  if (typeof logprob === 'number') {
    lines.push(['log p', formatNumber(logprob)], ['p', formatNumber(Math.exp(logprob))])
  }
  if (typeof page.entropies[at] === 'number')
    lines.push(['entropy', `${formatFixed(page.entropies[at], 4)} nats`])
  if (typeof page.advantages[at] === 'number')
    lines.push(['advantage', formatFixed(page.advantages[at], 4)])
  if (version)
    lines.push([
      'version',
      version[0] === version[1] ? String(version[0]) : `${version[0]} to ${version[1]}`,
    ])
  if (page.repeats[at])
    lines.push(['carried over', 'from the path before, and trained there if at all'])
  return lines
}
