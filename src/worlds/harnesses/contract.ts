/** A program of others that is started as the agent: one file each, held to one suite. */
export interface Harness {
  readonly name: string
  /** Its program, which is found, and the package that it is installed from if it is missing. */
  readonly install: {
    readonly program: string
    readonly from: { readonly npm: string } | { readonly pip: readonly string[] }
  }
  /** Variables besides those that every harness finds. */
  environment(assignment: Assignment): Readonly<Record<string, string>>
  /** How its program is started on a task, and in which protocol it is then talked to, if in any. */
  start(assignment: Assignment): Start
  /** Whether it did its work, from how it ended; else the attempt fails with what it printed. */
  isDone(ended: Ended): boolean
  /** What it answered last, and plain JSON for whoever reads the run. */
  report(ended: Ended): Reported
}

/** What a harness is to do, and where. */
export interface Assignment {
  readonly prompt: string
  /** The folder that is worked in. */
  readonly folder: string
  /** The name of the model to ask for. */
  readonly model: string
  /** The address at which it asks, without a version. */
  readonly url: string
  /** Good for this attempt alone. */
  readonly token: string
  /** Tokens that a conversation may have: it is told to compact its own before. @default it is told nothing */
  readonly context?: number | undefined
}

/** The share of a context at which a program is told to compact: its next request has to fit too. */
export const compactAt = 0.8

/** How a program is started. */
export interface Start {
  /** Behind the program. */
  readonly words: readonly string[]
  /** What it reads. @default nothing */
  readonly input?: string
  /** A file that it writes its result to, if it does. */
  readonly result?: string
  /** The protocol on its standard streams. @default none: it works until it ends */
  readonly speaks?: 'acp'
}

/** How a harness ended. */
export interface Ended {
  readonly code: number
  readonly output: string
  readonly complaints: string
  /** What it wrote to the file of its result. */
  readonly result?: string
  /** What it said last, and why it stopped, if a protocol tells. */
  readonly said?: { readonly answer: string; readonly stop: string }
}

/** What is known of an attempt from its harness. */
export interface Reported {
  readonly answer: string
  readonly [figure: string]: string | number
}

/** A harness that is opened: where its program is. */
export interface OpenedHarness {
  readonly harness: Harness
  /** The words that its own stand behind. */
  readonly program: readonly string[]
  /** Paths of this machine that it needs, if it runs here. */
  readonly shown: readonly string[]
}

/** The name of the model that a harness asks for. */
export const modelName = 'espalier'

/** The variables that every harness finds, whatever it reads of them. */
export function promisedVariables({ url, token, model }: Assignment) {
  return {
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_KEY: token,
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: token,
    GOOGLE_GEMINI_BASE_URL: url,
    GEMINI_API_KEY: token,
    ESPALIER_MODEL: model,
  }
}
