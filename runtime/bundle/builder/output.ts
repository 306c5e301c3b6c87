/** Output of one build. */
export interface Output {
  readonly script: string;
  /** Its sources are real paths, except the generated entry. */
  readonly map: SourceMap;
}

/** The fields of a source map that are read. */
export interface SourceMap {
  readonly version: 3;
  readonly sources: readonly string[];
  readonly sourcesContent?: readonly (string | null)[];
  readonly names: readonly string[];
  readonly mappings: string;
}
