import type { Diagnosis } from './doctor.ts'

/** What a diagnosis says under one heading; each entry is a sentence. */
export interface Section {
  readonly heading: string
  readonly sentences: readonly string[]
}

/** A diagnosis in words. */
export function describeDiagnosis(diagnosis: Diagnosis): readonly Section[] {
  return [
    { heading: 'prompt', sentences: describePrompt(diagnosis) },
    { heading: 'turn', sentences: describeEnding(diagnosis) },
    { heading: 'tools', sentences: describeTools(diagnosis) },
    { heading: 'replies', sentences: describeReplies(diagnosis) },
    { heading: 'images', sentences: describeImages(diagnosis) },
    { heading: 'borders', sentences: describeBorders(diagnosis) },
    {
      heading: 'patches',
      sentences: diagnosis.patches.map(({ name, reason }) => `${name}: ${reason}`),
    },
    { heading: 'limits', sentences: diagnosis.profile.limits.map(sentence) },
    { heading: 'rewrites', sentences: describeRewrites(diagnosis) },
    { heading: 'preserve', sentences: describePreserve(diagnosis) },
    { heading: 'faithful', sentences: describeFaithful(diagnosis) },
    { heading: 'audit', sentences: describeAudit(diagnosis) },
    { heading: 'problems', sentences: diagnosis.problems.map(sentence) },
  ].filter(({ sentences }) => sentences.length > 0)
}

/** A sentence with its capital letter and its full stop. */
function sentence(words: string): string {
  const start = words.charAt(0).toUpperCase() + words.slice(1)
  return /[.!?:]$/.test(start) ? start : `${start}.`
}

function describePrompt({ profile, problems }: Diagnosis): readonly string[] {
  if (problems.length > 0 && profile.generationPrompt === '' && profile.stops.length === 0)
    return []
  const prompt =
    profile.generationPrompt === ''
      ? 'Nothing is written to open a turn: the message before it does.'
      : `${JSON.stringify(shorten(profile.generationPrompt))} opens a turn.`
  return profile.opensThinking ? [prompt, 'The policy begins within a thinking block.'] : [prompt]
}

/** A long text without its middle. */
function shorten(text: string): string {
  return text.length <= 160 ? text : `${text.slice(0, 90)} … ${text.slice(-60)}`
}

function describeEnding({ profile, stops }: Diagnosis): readonly string[] {
  if (stops.length === 0) return []
  const { spoken, called, separator } = profile
  const samples = `A sample stops at ${stops.map(({ id, text }) => `${text} (${id})`).join(', ')}.`
  const opening = spoken.isOpening ? 'A turn has no end of its own: the next message opens it.' : ''
  const between = separator === '' ? '' : `${JSON.stringify(separator)} stands between messages.`
  const isOther = called && called.sampledStop !== spoken.sampledStop
  const calls =
    isOther && !spoken.isOpening ? `A turn that calls ends in ${called.sampledStop}.` : ''
  return [samples, opening, calls, between].filter(each => each !== '')
}

const groupings = {
  grouped: 'The results of parallel calls are written together.',
  separate: 'The results of parallel calls are written one by one.',
  single: '',
  unsupported: '',
}

function describeTools({ profile, formats }: Diagnosis): readonly string[] {
  if (!profile.offersTools && !profile.called) return []
  const format =
    formats.tools === undefined
      ? 'No known format of calls was found in the template: name one with --tool-format.'
      : `Calls are read as ${formats.tools}.`
  return [format, groupings[profile.toolResults]].filter(each => each !== '')
}

function describeReplies({ formats, replies }: Diagnosis): readonly string[] {
  const reasoning =
    formats.reasoning === undefined ? [] : [`Thinking is read as ${formats.reasoning}.`]
  if (replies.turns === 0) return reasoning
  const { read, turns, misread } = replies
  const counted = `${read} of ${turns} turns that the template wrote were read back as they were.`
  return [
    ...reasoning,
    counted,
    ...(misread === undefined ? [] : [sentence(`for example, ${misread}`)]),
  ]
}

function describeImages({ images }: Diagnosis): readonly string[] {
  if (images.kind === 'text-only') return [sentence(images.reason)]
  const counted = images.examples.map(({ width, height, tokens }) => {
    const size = `${width} x ${height}`
    return typeof tokens === 'number' ? `${size}: ${tokens} tokens` : `${size}: ${tokens}`
  })
  return [
    sentence(`they are laid out as by the family ${images.family}; ${counted.join('; ')}`),
    ...images.refused.map(({ role, reason }) =>
      sentence(`the template shows none in messages of role ${role}: ${reason}`),
    ),
  ]
}

function describeBorders({ profile }: Diagnosis): readonly string[] {
  const { opening, closing } = profile.borders
  if (closing === 'text') return []
  if (opening === 'control') {
    return ['Every turn stands between control tokens, so that no token can merge with another.']
  }
  return [
    'A turn begins behind text: a sample that begins with white space may be cut into other tokens ' +
      'than a re-encoding of the same text. The sampled ones are kept.',
  ]
}

function describeRewrites({ profile, problems }: Diagnosis): readonly string[] {
  if (problems.length > 0) return []
  if (profile.rewrites.length === 0) return ['None: the template only appends.']
  return profile.rewrites.map(({ change }) => sentence(change))
}

function describePreserve({ profile, problems }: Diagnosis): readonly string[] {
  if (problems.length > 0) return []
  const kept = [...new Set(profile.rewrites.map(({ preserved }) => preserved))]
  const appends = 'Appends only; what was seen and sampled stays as it was.'
  if (kept.length === 0) return [appends, 'A chat endpoint would show the policy the same.']
  return [
    appends,
    `The policy goes on seeing ${listOf(kept)}; a chat endpoint would have stripped or rewritten that.`,
  ]
}

function describeFaithful({ profile, audit, problems }: Diagnosis): readonly string[] {
  if (problems.length > 0) return []
  if (profile.rewrites.length === 0) {
    return ['Forks only where a turn was not written as the template writes it.']
  }
  const share = Math.round((100 * audit.rewritten) / Math.max(1, audit.turns))
  return [
    'Forks a new path at the first token that the template rewrites, with the cause; what the new ' +
      'path repeats is observed there, not trained again.',
    `In the audit it forked after ${share} % of the turns.`,
  ]
}

function describeAudit({ audit }: Diagnosis): readonly string[] {
  const { conversations, turns, exact, merged, rewritten, preserved } = audit
  const { causes, refused, violations } = audit
  if (conversations === 0) return []
  const counts = [
    `${exact} exact`,
    ...(merged > 0 ? [`${merged} exact as text`] : []),
    ...(rewritten > 0 ? [`${rewritten} rewritten`] : []),
    ...(preserved > 0 ? [`${preserved} behind a rewritten turn`] : []),
    ...(violations.length > 0 ? [`${violations.length} not exact`] : []),
  ]
  return [
    `${conversations} random conversations, ${turns} turns against the whole rendering: ${counts.join(', ')}.`,
    ...causes.map(({ reason, count }) => sentence(`${count} times ${reason}`)),
    ...refused.map(({ reason, count }) =>
      sentence(`${count} conversations were refused: ${reason}`),
    ),
  ]
}

function listOf(items: readonly string[]): string {
  if (items.length < 2) return items.join('')
  return `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`
}
