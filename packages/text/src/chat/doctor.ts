import { auditConversation } from './audit.ts'
import type { Profile } from './calibration/calibration.ts'
import { examineImages, type ImageDiagnosis } from './images/examine-images.ts'
import { type Conversation, randomConversation } from './random-conversation.ts'
import { readBack } from './read-back.ts'
import type { ModelRenderer } from './renderer.ts'
import type { Formats } from './reply.ts'

/** What was found out about a model folder. */
export interface Diagnosis {
  readonly model: string
  /** Ids are in [0, vocabulary). */
  readonly vocabulary: number
  readonly profile: Profile
  readonly formats: Formats
  readonly stops: readonly StopToken[]
  readonly patches: readonly { readonly name: string; readonly reason: string }[]
  readonly images: ImageDiagnosis
  readonly audit: AuditCounts
  readonly replies: ReplyCounts
  /** What defeats exact tokens, in words; empty if nothing does. */
  readonly problems: readonly string[]
}

/** A token at which samples stop. */
export interface StopToken {
  readonly id: number
  readonly text: string
}

/** How the turns of random conversations compare with whole renderings of them. */
export interface AuditCounts {
  readonly conversations: number
  readonly turns: number
  /** The tokens are those of the rendering. */
  readonly exact: number
  /** The text is the same; at a border within text, tokens are split differently. */
  readonly merged: number
  /** The template shows earlier turns differently: a faithful history forks. */
  readonly rewritten: number
  /** An earlier turn was rewritten, and is preserved. */
  readonly preserved: number
  readonly causes: readonly Counted[]
  /** Conversations that the template refuses to show. */
  readonly refused: readonly Counted[]
  readonly violations: readonly string[]
}

/** Something that was found, and how often. */
export interface Counted {
  readonly reason: string
  readonly count: number
}

/** How turns that the template wrote are read again. */
export interface ReplyCounts {
  readonly turns: number
  readonly read: number
  /** The first that was read as something else. */
  readonly misread: string | undefined
}

/** How much an examination does. */
export interface ExaminationOptions {
  /** How many random conversations are played. */
  readonly conversations: number
  /** Randomness for the n-th of them. */
  readonly random: (index: number) => () => number
}

/** Examines a renderer: its profile, and how exact it is on random conversations. */
export function examine(renderer: ModelRenderer, options: ExaminationOptions): Diagnosis {
  const { profile, tokenizer, formats, stopIds, patches } = renderer
  const spelled = ['<|im_end|>', '<think>', '<tool_call>', ...profile.stops]
  const conversations = Array.from({ length: options.conversations }, (_, index) =>
    randomConversation({ profile, random: options.random(index), spelled }),
  )
  const audit = auditAll(renderer, profile.problems.length > 0 ? [] : conversations)
  const replies = readAll(renderer, profile.problems.length > 0 ? [] : conversations)
  return {
    model: renderer.name,
    vocabulary: renderer.vocabulary,
    profile,
    formats,
    stops: stopIds.map(id => ({ id, text: tokenizer.tokenOf(id) ?? '' })),
    patches: patches.map(({ name, reason }) => ({ name, reason })),
    images: examineImages(renderer),
    audit,
    replies,
    problems: [...profile.problems, ...problemsOf(audit)],
  }
}

function problemsOf({ violations, turns, refused }: AuditCounts): readonly string[] {
  if (violations.length > 0) return [`the audit found tokens that are not exact: ${violations[0]}`]
  if (turns > 0 || refused.length === 0) return []
  return [`every conversation of the audit was refused: ${refused[0]!.reason}`]
}

function auditAll(renderer: ModelRenderer, conversations: readonly Conversation[]): AuditCounts {
  const counts = { turns: 0, exact: 0, merged: 0, rewritten: 0, preserved: 0 }
  const causes = new Map<string, number>()
  const refused = new Map<string, number>()
  const violations: string[] = []
  for (const conversation of conversations) {
    try {
      for (const finding of auditConversation(renderer, conversation)) {
        counts.turns++
        if (finding.kind === 'violated') violations.push(finding.problem)
        else counts[finding.kind]++
        if (finding.kind === 'rewritten') count(causes, kindOf(finding.cause))
      }
    } catch (error) {
      count(refused, error instanceof Error ? error.message : String(error))
    }
  }
  const { length } = conversations
  return {
    conversations: length,
    ...counts,
    causes: sorted(causes),
    refused: sorted(refused),
    violations,
  }
}

/** The cause of a rewrite without its turn and texts, so that equal kinds are counted together. */
function kindOf(cause: string): string {
  return cause.split(':')[0]!.replace(/ (?:text from )?turn \d+(?: on)?/, ' a turn')
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

function sorted(counts: ReadonlyMap<string, number>): readonly Counted[] {
  return [...counts]
    .map(([reason, times]) => ({ reason, count: times }))
    .sort((a, b) => b.count - a.count)
}

function readAll(renderer: ModelRenderer, conversations: readonly Conversation[]): ReplyCounts {
  let [turns, read] = [0, 0]
  let misread: string | undefined
  for (const conversation of conversations) {
    for (const finding of tryReadBack(renderer, conversation)) {
      if (finding.kind === 'unshown') continue
      turns++
      if (finding.kind === 'read') read++
      else misread ??= finding.problem
    }
  }
  return { turns, read, misread }
}

function tryReadBack(renderer: ModelRenderer, conversation: Conversation) {
  try {
    return readBack(renderer, conversation)
  } catch {
    // What a template refuses to show is counted by the audit.
    return []
  }
}
