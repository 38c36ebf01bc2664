import { describe, expect, it } from 'vitest'
import { random, seedOf } from '../../../../src/base/math/random.ts'
import {
  hasTemplates,
  openTemplate,
  templateNames,
} from '../../../../test/fixtures/chat-templates.ts'
import { auditConversation, type TurnFinding } from './audit.ts'
import { randomConversation } from './random-conversation.ts'
import type { ModelRenderer } from './renderer.ts'

const conversations = process.env.ESPALIER_SOAK ? 200 : 20

/** Plays seeded conversations in which users and tools also spell control strings. */
function auditTemplate(name: string, renderer: ModelRenderer): readonly TurnFinding[] {
  const { profile } = renderer
  const spelled = ['<|im_end|>', '<think>', '<tool_call>', ...profile.stops]
  return Array.from({ length: conversations }, (_, index) => {
    const conversation = randomConversation({
      profile,
      random: random(seedOf(name, index)),
      spelled,
    })
    return auditConversation(renderer, conversation)
  }).flat()
}

function countOf(findings: readonly TurnFinding[], kind: TurnFinding['kind']): number {
  return findings.filter(finding => finding.kind === kind).length
}

if (!hasTemplates) console.warn('skipped: no published chat templates beside this checkout')

/** Templates that show no conversation at all to anyone who gives them messages and tools. */
const unservable = ['fireworks-ai-llama-3-firefunction-v2']

/** Templates that only append, whatever a turn is and whatever follows it. */
const appending = [
  'ByteDance-Seed-OSS',
  'Kimi-K3',
  'MiniMax-M3',
  'Qwen-Qwen2.5-7B-Instruct',
  'Qwen3-Coder',
  'deepseek-ai-DeepSeek-V3.1',
  'deepseek-ai-DeepSeek-V4',
  'ibm-granite-granite-4.0',
  'meetkai-functionary-medium-v3.1',
  'meta-llama-Llama-3.1-8B-Instruct',
  'mistralai-Ministral-3-14B-Reasoning-2512',
  'moonshotai-Kimi-K2',
  'muse-glimmer',
  'poolside-Laguna-S-2.1',
  'upstage-Solar-Open-100B',
]

describe.skipIf(!hasTemplates)('the fidelity of published templates', () => {
  it.each(templateNames().filter(name => !unservable.includes(name)))(
    '[T2] opening, sampled turns and bridges are the rendering of %s, or a named rewrite of it',
    name => {
      const renderer = openTemplate(name)
      const { rewrites, borders } = renderer.profile
      const findings = auditTemplate(name, renderer)
      expect(findings.filter(({ kind }) => kind === 'violated')).toEqual([])
      const causes = findings.flatMap(each => (each.kind === 'rewritten' ? [each.cause] : []))
      for (const cause of causes)
        expect(cause).toMatch(/^the template (removed|writes) .*: ".*" became "/s)
      if (rewrites.length === 0) expect(causes).toEqual([])
      if (appending.includes(name)) expect(countOf(findings, 'exact')).toBe(findings.length)
      if (countOf(findings, 'merged') > 0) expect(Object.values(borders)).toContain('text')
    },
  )

  it('refuses, with the reason, where a template needs what nobody gives', () => {
    const { profile, render } = openTemplate('fireworks-ai-llama-3-firefunction-v2')
    expect(profile.problems).toEqual([expect.stringContaining("'functions' is undefined")])
    expect(() => render([{ role: 'user', content: 'hi' }], [])).toThrow("'functions' is undefined")
  })
})
