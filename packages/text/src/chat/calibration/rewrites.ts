import { type AssistantMessage, type Message, textOf } from '../../message.ts'
import { type CallEnding, type Ending, snap } from './ending.ts'
import {
  again,
  argumentMark,
  asked,
  callingTurn,
  callsOf,
  commonPrefix,
  contentMark,
  type Probe,
  probeResult,
  probeTool,
  spokenTurn,
  thoughtMark,
  withoutThought,
} from './probe.ts'

/** A way in which a template does not show history as it was seen and sampled. */
export interface Rewrite {
  readonly kind: 'thinking' | 'opening' | 'empty-thinking' | 'closing' | 'turn' | 'earlier'
  /** What the template does, and when. */
  readonly change: string
  /** What a policy goes on seeing if history is preserved, and a chat endpoint would not show. */
  readonly preserved: string
}

/** How turns end; needed to describe a closing that changed. */
interface Endings {
  readonly spoken: Ending | undefined
  readonly called: CallEnding | undefined
}

interface Scene {
  readonly when: string
  readonly before: readonly Message[]
  readonly turn: AssistantMessage
  readonly observed: readonly Message[]
  readonly tools: boolean
}

/** What a turn thinks that is not the last one. */
const earlierThought = 'qzprobepondered'

/** Finds what a template rewrites, by comparing renderings before and after each kind of message. */
export function findRewrites(probe: Probe, endings: Endings): readonly Rewrite[] {
  const found = scenes(endings).flatMap(scene => {
    const opening = findOpening(probe, scene)
    // An empty thinking block comes and goes with the messages around it; that is said once.
    const isSaid = opening.some(({ kind }) => kind === 'empty-thinking')
    return isSaid ? opening : [...opening, ...findChange(probe, scene, endings)]
  })
  const distinct = new Map<string, Rewrite>()
  for (const rewrite of found) {
    // One opening is lost in the same words before turns of every kind.
    const key = rewrite.kind === 'opening' ? rewrite.preserved : rewrite.change
    if (!distinct.has(key)) distinct.set(key, rewrite)
  }
  return [...distinct.values()]
}

function scenes({ called }: Endings): readonly Scene[] {
  const result = probeResult()
  const calling = callingTurn(callsOf([result]), called?.mark)
  const user = { observed: [again], tools: false }
  const tool = { observed: [result], tools: true }
  const spoken: Scene[] = [
    { when: 'a new user message', before: [asked], turn: spokenTurn, ...user },
    { when: 'a new user message', before: [asked], turn: withoutThought(spokenTurn), ...user },
  ]
  if (!called) return spoken
  const earlier = probeResult(1)
  const first = callingTurn(callsOf([earlier]), called.mark)
  const loop = [asked, { ...first, reasoning_content: earlierThought }, earlier]
  return [
    ...spoken,
    { when: 'a tool result', before: [asked], turn: calling, ...tool },
    { when: 'a tool result', before: [asked], turn: withoutThought(calling), ...tool },
    { when: 'a second tool result', before: loop, turn: calling, ...tool },
    { when: 'a new user message', before: loop, turn: spokenTurn, observed: [again], tools: true },
    { when: 'a new user message', before: severalResults(called), turn: spokenTurn, ...user },
  ]
}

/** Instructions and several results: some templates lose count of their messages there. */
function severalResults({ mark }: CallEnding): readonly Message[] {
  const results = [probeResult(1), probeResult()]
  const instructions: Message = { role: 'system', content: 'Be brief.' }
  const turn = { ...callingTurn(callsOf(results), mark), reasoning_content: earlierThought }
  return [instructions, asked, turn, ...results]
}

/** What of the prompt before a turn is not in the rendering of that turn. */
function findOpening(probe: Probe, scene: Scene): readonly Rewrite[] {
  const { before, turn, tools } = scene
  const prompt = probe.text(before, { opens: true, tools })
  const shown = probe.text([...before, turn], { tools })
  if (typeof prompt !== 'string' || typeof shown !== 'string') return []
  const hasThought = turn.reasoning_content !== undefined
  if (!shown.startsWith(prompt)) {
    if (prompt.includes(earlierThought) && !shown.includes(earlierThought)) {
      return [lostThinking('a later turn')]
    }
    return [changedOpening(prompt, shown, { hasThought, controls: probe.controls })]
  }
  if (hasThought || !hasEmptyThought(probe, scene, prompt)) return []
  return [
    {
      kind: 'empty-thinking',
      change: 'a turn that did not think is shown with an empty thinking block',
      preserved: 'earlier turns without the empty thinking block',
    },
  ]
}

function changedOpening(
  prompt: string,
  shown: string,
  { hasThought, controls }: { hasThought: boolean; controls: readonly string[] },
): Rewrite {
  const shared = commonPrefix(prompt, shown).length
  const at = Math.min(snap(prompt, shared, controls), snap(shown, shared, controls))
  const was = excerpt(prompt.slice(at))
  const which = hasThought ? 'a turn' : 'a turn that did not think'
  return {
    kind: 'opening',
    change: `the prompt of ${which} ended with ${was}, where history shows ${excerpt(shown.slice(at))}`,
    preserved: `${was} before earlier turns`,
  }
}

const shownLength = 40

/** How the probe words of synthetic conversations are shown to people. */
const placeholders: readonly (readonly [word: string, shown: string])[] = [
  [thoughtMark, 'THOUGHTS'],
  [earlierThought, 'THOUGHTS'],
  [contentMark, 'WORDS'],
  [argumentMark, 'VALUE'],
  [probeTool.function.name, 'TOOL'],
  [asked.content, 'QUESTION'],
  [again.content, 'QUESTION'],
]

function excerpt(text: string): string {
  const readable = placeholders.reduce((shown, [word, name]) => shown.replaceAll(word, name), text)
  const cut = readable.slice(0, shownLength)
  return JSON.stringify(cut.length < readable.length ? `${cut}…` : cut)
}

/** Whether a turn without thinking is written as one whose thinking says nothing. */
function hasEmptyThought(probe: Probe, { before, turn, tools }: Scene, prompt: string): boolean {
  const thoughtful = { ...turn, reasoning_content: thoughtMark }
  const shown = probe.text([...before, turn], { tools })
  const thinking = probe.text([...before, thoughtful], { tools })
  if (typeof shown !== 'string' || typeof thinking !== 'string') return false
  // If the prompt opened the block, it is the policy that leaves it empty, not the template.
  const isOpened = thinking.slice(prompt.length).trimStart().startsWith(thoughtMark)
  if (isOpened || !thinking.includes(thoughtMark)) return false
  const written = (text: string): string => text.replace(thoughtMark, '').replaceAll(/\s/g, '')
  const plain = shown.slice(prompt.length)
  const mark = [contentMark, argumentMark].find(each => plain.includes(each)) ?? contentMark
  return written(plain) === written(thinking.slice(prompt.length)) && !plain.startsWith(mark)
}

/** What a message changes in the text before it. */
function findChange(probe: Probe, scene: Scene, endings: Endings): readonly Rewrite[] {
  const { before, turn, observed, tools } = scene
  const opened = probe.text(before, { opens: true, tools })
  const shown = probe.text([...before, turn], { tools })
  const now = probe.text([...before, turn, ...observed], { opens: true, tools })
  if (typeof shown !== 'string' || typeof now !== 'string' || now.startsWith(shown.trimEnd())) {
    return []
  }
  const isLost = (thought: string): boolean => shown.includes(thought) && !now.includes(thought)
  if (isLost(thoughtMark) || isLost(earlierThought)) return [lostThinking(scene.when)]
  const at = commonPrefix(shown, now).length
  const ending = tools ? (endings.called ?? endings.spoken) : endings.spoken
  if (
    ending &&
    ending.sampledStop !== ending.stop &&
    shown.trimEnd().endsWith(ending.sampledStop)
  ) {
    return [changedClosing(scene, ending)]
  }
  const isEarlier = typeof opened === 'string' && at < opened.length && shown.startsWith(opened)
  const isOpening = isEarlier && at > opened.lastIndexOf(textOf(before.at(-1)?.content ?? ''))
  if (isOpening) {
    return [
      changedOpening(shown.slice(0, opened.length), now, {
        hasThought: false,
        controls: probe.controls,
      }),
    ]
  }
  return [changedText(scene, isEarlier)]
}

function lostThinking(when: string): Rewrite {
  return {
    kind: 'thinking',
    change: `${when} removes the thinking of earlier turns`,
    preserved: 'the thinking of its earlier turns',
  }
}

function changedClosing({ when }: Scene, { stop, sampledStop }: Ending): Rewrite {
  const now = stop === '' ? 'nothing' : stop
  return {
    kind: 'closing',
    change: `${when} makes the turn before it end in ${now} instead of ${sampledStop}`,
    preserved: `${sampledStop} at the end of earlier turns, as it was sampled`,
  }
}

function changedText({ when }: Scene, isEarlier: boolean): Rewrite {
  if (!isEarlier) {
    return {
      kind: 'turn',
      change: `${when} makes the template write the turn before it otherwise`,
      preserved: 'earlier turns as they were sampled',
    }
  }
  return {
    kind: 'earlier',
    change: `${when} makes the template write text before the last turn otherwise`,
    preserved: 'instructions and tools where they were first written',
  }
}
