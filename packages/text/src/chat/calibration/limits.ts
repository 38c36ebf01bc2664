import type { Message } from '../../message.ts'
import type { Profile } from './calibration.ts'
import type { CallEnding } from './ending.ts'
import { after, asked, callingTurn, type Probe } from './probe.ts'

/** What `findLimits` reads. */
export interface LimitSources
  extends Pick<Profile, 'toolResults' | 'offersTools' | 'needsTools' | 'stops'> {
  readonly called: CallEnding | undefined
}

/** What a template cannot serve, in words; none of it makes tokens inexact. */
export function findLimits(probe: Probe, sources: LimitSources): readonly string[] {
  return [
    ...findToolLimits(probe, sources),
    ...findStopsWithin(probe, sources),
    ...findRefusals(probe),
  ]
}

function findToolLimits(probe: Probe, sources: LimitSources): readonly string[] {
  const { called, toolResults, offersTools, needsTools } = sources
  const offered = probe.text([asked], { opens: true, tools: true })
  if (typeof offered !== 'string') return [`tools cannot be offered: ${offered.message}`]
  const limits: string[] = []
  if (!offersTools) limits.push('tools on offer are not shown to the policy')
  if (needsTools) limits.push('a conversation without tools is refused')
  if (toolResults === 'unsupported') limits.push(...findUnshown(probe))
  if (toolResults === 'single') limits.push('the results of several calls in one turn are refused')
  if (toolResults === 'unsupported') return limits
  if (called?.mark === 'content') limits.push('calls of earlier turns are left out of a rendering')
  if (called?.mark === 'first') limits.push('of several calls in one turn only the first is shown')
  return limits
}

function findUnshown(probe: Probe): readonly string[] {
  const turn = probe.text([asked, callingTurn([{}])], { tools: true })
  if (typeof turn !== 'string') return [`a turn that calls cannot be rendered: ${turn.message}`]
  return ['tool results are not shown to the policy']
}

/** A sample ends at its first stop token, so a turn with one in its middle is never sampled whole. */
function findStopsWithin(probe: Probe, { called, stops }: LimitSources): readonly string[] {
  if (!called) return []
  const prompt = probe.text([asked], { opens: true, tools: true })
  const turn = probe.text([asked, callingTurn([{}], called.mark)], { tools: true })
  if (typeof prompt !== 'string' || typeof turn !== 'string') return []
  const body = (after(turn, asked.content) ?? '').slice((after(prompt, asked.content) ?? '').length)
  const spoken = body.slice(0, body.lastIndexOf(called.sampledStop))
  return stops
    .filter(stop => spoken.includes(stop))
    .map(stop => `a turn that calls has ${stop} in its middle, where a sample would stop`)
}

function findRefusals(probe: Probe): readonly string[] {
  const shown = renderInstructed(probe)
  if (typeof shown !== 'string') return [`system messages are refused: ${shown.message}`]
  return shown.includes(instructions) ? [] : ['system messages are not shown to the policy']
}

const instructions = 'Be brief.'

function renderInstructed({ text }: Probe): string | Error {
  const system: Message = { role: 'system', content: instructions }
  return text([system, asked], { opens: true })
}

/** Whether a conversation may begin with a system message. */
export function takesSystem(probe: Probe): boolean {
  return typeof renderInstructed(probe) === 'string'
}
