import type { Evaluation } from '../held-out.ts'
import type { BestStep } from '../training-state.ts'
import type { Course } from './course.ts'
import { type Told, unreadOf } from './unread.ts'

/** What came of a training run. */
export type Finding =
  | 'solved'
  | 'learned'
  | 'by-heart'
  | 'never-solved'
  | 'no-contrast'
  | 'fell-apart'
  | 'collapsed'
  | 'timid'
  | 'too-few-steps'
  | 'not-learned'

/** What a next try changes. */
export type Remedy =
  | { readonly kind: 'measure' }
  | { readonly kind: 'more-steps' }
  | { readonly kind: 'more-tasks' }
  | { readonly kind: 'rate'; readonly factor: number }
  | { readonly kind: 'group' }
  | { readonly kind: 'teach-more' }

/** What happened in a training run, why, and what to do about it. */
export interface Verdict {
  readonly finding: Finding
  /** In words, for people. */
  readonly text: string
  readonly remedy: Remedy
}

/** What a verdict is made from. */
export interface Outcome {
  readonly before: Omit<Evaluation, 'attempts'> & { readonly attempts: readonly Told[] }
  readonly after: Evaluation
  readonly best: Pick<BestStep, 'step' | 'success'>
  readonly course: Course
  /** Why it stopped before its last step. */
  readonly stopped?: 'idle' | 'solved'
  /** How often a task was tried, in groups. */
  readonly tries: number
  /** How many tasks there are to train on. */
  readonly tasks: number
}

/** How much a share must rise to count, beside what chance does. */
const clear = 0.05

/** Says what came of a run: of several findings that fit, the one that explains the others. */
export function verdictOf(outcome: Outcome): Verdict {
  for (const find of findings) {
    const found = find(outcome)
    if (found)
      return withUnread({ ...found, text: `${stoppedWords(outcome)}${found.text}` }, outcome)
  }
  return withUnread(notLearned(outcome), outcome)
}

/** Shares of failed attempts that passed what they had not read: so many are a cause, so few solved ones exclude a rule. */
const [manyUnread, fewUnread] = [0.3, 0.05]

/** Adds that a model fails since it does not copy what it reads: rewards hardly teach that, demonstrations do. */
function withUnread(verdict: Verdict, { before, best }: Outcome): Verdict {
  const unread = unreadOf(before.attempts)
  if (!unread || best.success >= 0.5) return verdict
  if (unread.failed < manyUnread || unread.solved > fewUnread) return verdict
  return {
    ...verdict,
    text:
      `${verdict.text} At the start, ${percent(unread.failed)} of the failed attempts passed a name or a number to a tool that nothing had said: ` +
      'the model does not copy yet, and rewards hardly teach that. Demonstrations of more tasks do.',
    remedy: { kind: 'teach-more' },
  }
}

type Find = (outcome: Outcome) => Verdict | undefined

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

const heldOutWords = ({ before, best }: Outcome): string =>
  best.step === 0
    ? `success on held-out tasks did not rise above the ${percent(before.success)} of the start`
    : `success on held-out tasks went from ${percent(before.success)} to ${percent(best.success)} (step ${best.step})`

function stoppedWords({ stopped, course }: Outcome): string {
  if (stopped === undefined) return ''
  const why = {
    idle: 'there was nothing to learn from any more',
    solved: 'every held-out task is solved',
  }
  return `Stopped after step ${course.steps}, as ${why[stopped]}. `
}

/** Whether the best model is better than the start by more than chance. */
function hasLearned({ before, best }: Outcome): boolean {
  return best.success > before.interval.high && best.success - before.success >= clear
}

const solved: Find = outcome =>
  outcome.best.success >= 0.99
    ? {
        finding: 'solved',
        text: `It is learned: ${heldOutWords(outcome)}.`,
        remedy: { kind: 'measure' },
      }
    : undefined

const rise = ({ first, last }: { readonly first: number; readonly last: number }): number =>
  last - first

/** Training tasks are solved far more often than before, held-out ones hardly. */
const byHeart: Find = outcome => {
  const { before, best, course, tries, tasks } = outcome
  const gained = best.success - before.success
  const learned = rise(course.success)
  if (learned < 0.15 || gained > learned / 2 || tries < 3) return undefined
  return {
    finding: 'by-heart',
    text:
      `Learned by heart: on its own ${tasks} tasks success rose from ${percent(course.success.first)} to ${percent(course.success.last)}, ` +
      `but ${heldOutWords(outcome)}. Each task was tried in ${tries.toFixed(0)} groups. What helps is more tasks, then fewer steps.`,
    remedy: { kind: 'more-tasks' },
  }
}

const learned: Find = outcome => {
  if (!hasLearned(outcome)) return undefined
  const { after, best, course } = outcome
  const fell = best.success - after.success > 2 * clear
  const { previous, last } = course.success
  // Steps of few tasks rise and fall by chance: the held-out tasks have to say so too.
  const isLate = best.step > (2 / 3) * course.steps
  const rising = isLate && !fell && last < 0.95 && last - previous > clear / 2
  return {
    finding: 'learned',
    text:
      `It learned: ${heldOutWords(outcome)}.` +
      (fell ? ` Later steps lost some of it again (${percent(after.success)} at the end).` : '') +
      (rising ? ' It was still rising, so more steps are worth their time.' : ''),
    remedy: { kind: rising ? 'more-steps' : 'measure' },
  }
}

const neverSolved: Find = ({ course, before }) =>
  Math.max(course.success.first, course.success.last, before.success) < 0.02 &&
  rise(course.reward) < clear
    ? {
        finding: 'never-solved',
        text:
          `Too hard as it is: ${percent(course.success.last)} of the attempts succeed, so there is next to nothing to reinforce. ` +
          'Look at two attempts with `show` first: the reward may ask for another form than the policy gives. Then show more, or begin with easier tasks.',
        remedy: { kind: 'teach-more' },
      }
    : undefined

const noContrast: Find = ({ course }) =>
  course.contrast !== undefined && course.contrast < 0.5
    ? {
        finding: 'no-contrast',
        text:
          `No contrast: in ${percent(1 - course.contrast)} of the steps all attempts at each task earned the same, and nothing is learned from those. ` +
          'Tasks of middling difficulty, more attempts per task or demonstrations that try different things make some.',
        remedy: { kind: 'group' },
      }
    : undefined

/** Whether the model at the end is worse than the start by more than chance. */
const hasFallen = ({ before, after }: Outcome): boolean =>
  after.success < before.interval.low && before.success - after.success >= clear

const fellApart: Find = outcome => {
  const { before, after, best, course } = outcome
  const { entropy } = course
  const rose = entropy && entropy.last > entropy.first + 0.5 && entropy.last > 2 * entropy.first
  if (!rose && !hasFallen(outcome)) return undefined
  return {
    finding: 'fell-apart',
    text:
      `The policy fell apart: success on held-out tasks went from ${percent(before.success)} to ${percent(after.success)}` +
      (rose
        ? `, and its entropy rose from ${entropy.first.toFixed(2)} to ${entropy.last.toFixed(2)} nats per token`
        : '') +
      `. The steps were too large. The best weights are those of step ${best.step}.`,
    remedy: { kind: 'rate', factor: 1 / 4 },
  }
}

const collapsed: Find = ({ course: { entropy, success } }) =>
  entropy && entropy.last < 0.05 && entropy.last < entropy.first / 5 && success.last < 0.9
    ? {
        finding: 'collapsed',
        text:
          `The policy became certain before it was good: its entropy fell from ${entropy.first.toFixed(2)} to ${entropy.last.toFixed(2)} nats per token ` +
          `at a success of ${percent(success.last)}. Smaller steps leave it time to try other ways.`,
        remedy: { kind: 'rate', factor: 1 / 2 },
      }
    : undefined

const timid: Find = ({ course: { kl, success }, course }) =>
  kl !== undefined && kl < 5e-4 && course.learningRate === undefined && rise(success) < clear
    ? {
        finding: 'timid',
        text: `The steps were too small: each moved the policy by only ${kl.toExponential(1)} nats per token.`,
        remedy: { kind: 'rate', factor: 4 },
      }
    : undefined

const tooFewSteps: Find = outcome =>
  rise(outcome.course.success) >= clear ||
  rise(outcome.course.reward) >= clear ||
  outcome.best.success - outcome.before.success >= clear
    ? {
        finding: 'too-few-steps',
        text:
          `Too early to tell: success of the attempts went from ${percent(outcome.course.success.first)} to ${percent(outcome.course.success.last)}, ` +
          `and ${heldOutWords(outcome)}, which chance could do too.`,
        remedy: { kind: 'more-steps' },
      }
    : undefined

const findings: readonly Find[] = [
  solved,
  byHeart,
  learned,
  neverSolved,
  collapsed,
  fellApart,
  noContrast,
  timid,
  tooFewSteps,
]

function notLearned(outcome: Outcome): Verdict {
  return {
    finding: 'not-learned',
    text:
      `${stoppedWords(outcome)}It did not learn: ${heldOutWords(outcome)}, although attempts differed and the weights moved. ` +
      'A likely cause is demonstrations that choose at random, or too few of them: rewards seldom find what to look at. Let them show what is right if you can say it, or show more.',
    remedy: { kind: 'teach-more' },
  }
}
