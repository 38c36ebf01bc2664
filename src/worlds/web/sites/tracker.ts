import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { Environment, MadeTask, MakeTasksOptions } from '../../../base/core/environment.ts'
import { type Random, random, seedOf, shuffle } from '../../../base/math/random.ts'
import { lateSchema } from '../../../engine/environments/late.ts'
import { type WebOptions, web } from '../web.ts'
import { type Asked, attachment, choices, type Html, html, page, seeOther, serve } from './html.ts'

const labels = ['bug', 'question', 'wish'] as const
const members = ['', 'ada', 'ben', 'cleo', 'dan'] as const
const states = ['open', 'closed'] as const

function makeSchema() {
  const issue = z.object({
    title: z.string(),
    label: z.enum(labels),
    assignee: z.enum(members),
    state: z.enum(states),
    comments: z.array(z.string()),
  })
  return z.object({
    /** The issues that a tracker begins with are a function of this. */
    tracker: z.int().min(0),
    goal: z.string().min(1),
    /** All issues as they should be in the end, by number. */
    wanted: z.array(issue),
  })
}

/** What is to be changed in a tracker. */
export type TrackerTask = z.output<ReturnType<typeof makeSchema>>
type Issue = TrackerTask['wanted'][number]

const places = ['login page', 'search field', 'export', 'settings page', 'start screen', 'archive']
const troubles = ['is slow', 'shows an error', 'forgets its filter', 'is hard to find', 'is empty']

/** The issues of a tracker: ten, no two of one title. */
function issuesOf(tracker: number): readonly Issue[] {
  const draw = random(seedOf('web-tracker', tracker))
  const titles = places.flatMap(place => troubles.map(trouble => `The ${place} ${trouble}`))
  return shuffle(titles, draw)
    .slice(0, 10)
    .map(title => ({
      title,
      label: pick(labels, draw),
      assignee: pick(members, draw),
      state: draw() < 0.8 ? 'open' : 'closed',
      comments: [],
    }))
}

function pick<T>(from: readonly T[], draw: Random): T {
  return from[Math.floor(draw() * from.length)]!
}

/** An issue tracker with filters, comments and an export; the reward is the state of all issues. */
export function webTracker(options: WebOptions = {}): Environment<TrackerTask> {
  return web({
    ...options,
    name: 'web-tracker',
    task: lateSchema(makeSchema),
    open({ data }) {
      const tracker = new Tracker(issuesOf(data.tracker))
      return {
        goal: data.goal,
        start: 'http://tracker.test/',
        sites: { 'tracker.test': serve('Issues', tracker.routes) },
        report: () => ({ issues: tracker.issues }),
      }
    },
    reward: {
      done: ({ task: { data }, report: { site } }) =>
        Number(isDeepStrictEqual(site.issues, data.wanted)),
      right: { weight: 0, score: ({ task, report }) => shareRight(task.data, report.site.issues) },
    },
    makeTasks: trackerTasks,
    splits: ['train', 'held-out'],
  })
}

/** The share of what had to change that is as it should be. */
function shareRight({ tracker, wanted }: TrackerTask, issues: readonly Issue[]): number {
  const before = issuesOf(tracker)
  const changed = wanted.flatMap((issue, at) => (isDeepStrictEqual(issue, before[at]) ? [] : [at]))
  const right = changed.filter(at => isDeepStrictEqual(issues[at], wanted[at]))
  return changed.length === 0 ? 1 : right.length / changed.length
}

/** The tracker of one attempt. */
class Tracker {
  readonly issues: Issue[]

  constructor(issues: readonly Issue[]) {
    this.issues = [...issues]
  }

  readonly routes = {
    'GET /': ({ query }: Asked) => this.#list(query),
    'GET /new': () => page('Issues', 'New issue', issueForm('/new', 'Create')),
    'POST /new': ({ form }: Asked) => this.#create(form),
    'GET /issue': ({ query }: Asked) => this.#show(Number(query.get('number'))),
    'POST /issue': ({ form, query }: Asked) => this.#change(Number(query.get('number')), form),
    'POST /comment': ({ form, query }: Asked) => this.#comment(Number(query.get('number')), form),
    'GET /export': () => attachment('issues.csv', this.#table()),
  }

  #list(query: URLSearchParams): Response {
    const [label, assignee, state] = ['label', 'assignee', 'state'].map(
      name => query.get(name) ?? '',
    )
    const fits = (issue: Issue): boolean =>
      (!label || issue.label === label) &&
      (!assignee || (issue.assignee || 'nobody') === assignee) &&
      (!state || issue.state === state)
    const rows = this.issues.map((issue, index) =>
      fits(issue)
        ? html`<tr><td>${index + 1}</td><td><a href="/issue?number=${index + 1}">${issue.title}</a></td><td>${issue.label}</td><td>${issue.assignee || 'nobody'}</td><td>${issue.state}</td></tr>`
        : undefined,
    )
    return page(
      'Issues',
      'Issues',
      html`<p><a href="/new">New issue</a> <a href="/export">Export</a></p>
<form>${choices('label', 'Label', ['', ...labels], label)}${choices('assignee', 'Assignee', ['', 'nobody', ...members.slice(1)], assignee)}${choices('state', 'State', ['', ...states], state)}<button>Filter</button></form>
<table><tr><th>Number</th><th>Title</th><th>Label</th><th>Assignee</th><th>State</th></tr>${rows}</table>`,
    )
  }

  #show(number: number): Response | undefined {
    const issue = this.issues[number - 1]
    if (!issue) return undefined
    const comments = issue.comments.map(text => html`<li>${text}</li>`)
    return page(
      'Issues',
      `${number}: ${issue.title}`,
      html`${issueForm(`/issue?number=${number}`, 'Save', issue)}<h2>Comments</h2><ul>${comments}</ul>
<form method="post" action="/comment?number=${number}"><label>Comment <textarea name="text"></textarea></label><button>Add the comment</button></form>`,
    )
  }

  #create(form: URLSearchParams): Response | undefined {
    const issue = readIssue(form)
    if (!issue || this.issues.length === 1000) return undefined
    this.issues.push({ ...issue, comments: [] })
    return seeOther(`/issue?number=${this.issues.length}`)
  }

  #change(number: number, form: URLSearchParams): Response | undefined {
    const [issue, changed] = [this.issues[number - 1], readIssue(form)]
    if (!issue || !changed) return undefined
    this.issues[number - 1] = { ...issue, ...changed }
    return seeOther(`/issue?number=${number}`)
  }

  #comment(number: number, form: URLSearchParams): Response | undefined {
    const issue = this.issues[number - 1]
    const text = (form.get('text') ?? '').trim()
    if (!issue || text === '' || issue.comments.length === 100) return undefined
    this.issues[number - 1] = { ...issue, comments: [...issue.comments, text.slice(0, 1000)] }
    return seeOther(`/issue?number=${number}`)
  }

  #table(): string {
    const rows = this.issues.map(({ title, label, assignee, state }, index) =>
      [index + 1, title, label, assignee, state].join(),
    )
    return `${['number,title,label,assignee,state', ...rows].join('\n')}\n`
  }
}

function issueForm(action: string, button: string, issue?: Issue): Html {
  return html`<form method="post" action="${action}"><label>Title <input name="title" size="60" value="${issue?.title ?? ''}"></label>
${choices('label', 'Label', labels, issue?.label)}${choices('assignee', 'Assignee', ['nobody', ...members.slice(1)], issue?.assignee)}${choices('state', 'State', states, issue?.state)}<button>${button}</button></form>`
}

/** What a form says of an issue; undefined if it is none that can be. */
function readIssue(form: URLSearchParams): Omit<Issue, 'comments'> | undefined {
  const title = (form.get('title') ?? '').trim().slice(0, 200)
  const label = labels.find(each => each === form.get('label'))
  const assignee = members.find(each => (each || 'nobody') === form.get('assignee'))
  const state = states.find(each => each === form.get('state'))
  if (title === '' || !label || assignee === undefined || !state) return undefined
  return { title, label, assignee, state }
}

/** Changes in the seed's order; those of other trackers are held out. */
function trackerTasks(options: MakeTasksOptions): readonly MadeTask<TrackerTask>[] {
  const { count, seed, split = 'train' } = options
  return Array.from({ length: count }, (_, index) => {
    const draw = random(seedOf(seed, 'web-tracker', split, index))
    const tracker = 2 * Math.floor(draw() * 5000) + Number(split === 'held-out')
    const [words, wanted] = pick(changes, draw)(issuesOf(tracker), draw)
    const goal = `${words} Change nothing else. Say done when that is done.`
    return { id: `${split}-${index}`, data: { tracker, goal, wanted: [...wanted] } }
  })
}

type Change = (issues: readonly Issue[], draw: Random) => readonly [string, readonly Issue[]]

/** The kinds of tasks: what is asked for, and how the issues are when it is done. */
const changes: readonly Change[] = [
  (issues, draw) => {
    const chosen = pick(issues, draw)
    const text = `Seen again in version ${1 + Math.floor(draw() * 9)}.`
    const commented: Issue = { ...chosen, state: 'closed', comments: [text] }
    return [
      `Comment on the issue "${chosen.title}" with the text "${text}", and see to it that it is closed.`,
      issues.map(issue => (issue === chosen ? commented : issue)),
    ]
  },
  (issues, draw) => {
    const label = pick(issues, draw).label
    const assignee = pick(members.slice(1), draw)
    const isMeant = (issue: Issue): boolean => issue.label === label && issue.state === 'open'
    return [
      `Assign every open issue with the label ${label} to ${assignee}.`,
      issues.map(issue => (isMeant(issue) ? { ...issue, assignee } : issue)),
    ]
  },
  (issues, draw) => {
    const title = `Ask for a colour before version ${1 + Math.floor(draw() * 9)}`
    const [label, assignee] = [pick(labels, draw), pick(members.slice(1), draw)]
    const made: Issue = { title, label, assignee, state: 'open', comments: [] }
    return [
      `Create an open issue "${title}" with the label ${label}, assigned to ${assignee}.`,
      [...issues, made],
    ]
  },
]
