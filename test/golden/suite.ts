/** Reads one kind of golden file and compares our answers with it. */
export interface GoldenSuite {
  readonly name: string
  /** Whether this suite reads the file of that path, relative to the golden folder. */
  matches(path: string): boolean
  run(text: string, options: GoldenOptions): Promise<GoldenResult> | GoldenResult
}

export interface GoldenOptions {
  readonly name: string
  /** Folder of chat templates, if one was found. */
  readonly templates: string | undefined
  /** An official tau-bench checkout, if the caller has one. */
  readonly tauBench: string | undefined
  /** A tau2-bench checkout, if the caller has one. */
  readonly tau2Bench: string | undefined
  /** The folder of SmolLM2-135M-Instruct in bf16, if the caller has one. */
  readonly smollm2?: string | undefined
  /** The golden folder itself. */
  readonly root: string
}

/** Required cases only: `failures` holds one sentence per failed case; `notes` say what was skipped. */
export interface GoldenResult {
  readonly passed: number
  readonly failures: readonly string[]
  readonly notes?: readonly string[]
}
