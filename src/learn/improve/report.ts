import { count } from '../../base/core/names/units.ts'
import type { Improved } from './improve-prompt.ts'

/** What weights that were trained from the better prompt gave. */
export interface TrainedFromPrompt {
  readonly successBefore: number
  readonly successAfter: number
  readonly sampledTokens: number
  readonly run: string | undefined
}

/** What each stage bought, as Markdown. */
export function improvementReport(improved: Improved, trained?: TrainedFromPrompt): string {
  const { successBefore, successAfter, difference, tokens, tasks, candidates, rejected } = improved
  const spent = tokens.policy + tokens.reflection
  const rows = [
    ['prompt', successBefore, successAfter, spent] as const,
    ...(trained
      ? [['weights', trained.successBefore, trained.successAfter, trained.sampledTokens] as const]
      : []),
  ]
  return [
    '# What the prompt bought, and what the weights',
    '',
    '| stage | held-out success before | after | sampled tokens |',
    '|---|---|---|---|',
    ...rows.map(
      ([stage, before, after, paid]) =>
        `| ${stage} | ${before.toFixed(3)} | ${after.toFixed(3)} | ${count(paid)} |`,
    ),
    '',
    `The prompt's difference on ${count(tasks.heldOut)} held-out tasks is ${signed(difference.value)} ` +
      `(${signed(difference.low)} to ${signed(difference.high)}, paired by task). ${count(candidates)} prompts were kept, ` +
      `${count(rejected)} were not better. ${count(tasks.reflected)} tasks were reflected on and ${count(tasks.validation)} others ` +
      `chose; measuring took ${count(tokens.measuring)} tokens more.`,
    '',
    ...(trained?.run === undefined ? [] : [`The training run: ${trained.run}`, '']),
    '## The prompt',
    '',
    ...(improved.prompt.system === undefined ? [] : [fenced(improved.prompt.system), '']),
    ...Object.entries(improved.prompt.tools ?? {}).flatMap(([name, text]) => [
      `Tool \`${name}\`:`,
      '',
      fenced(text),
      '',
    ]),
  ].join('\n')
}

const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`

const fenced = (text: string): string => `~~~\n${text}\n~~~`
