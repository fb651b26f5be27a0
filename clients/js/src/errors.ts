// Everything that can go wrong, as one small tree. Messages say what was expected and never show a person's value.
//
//     VeilError            has a `code`, for programs
//       DomainError        the answer is not one that this survey takes
//       SurveyError        the survey is refused: its signature, its promise, its form or its time
//       BudgetError        the answer would cost more than the person has left
//       StorageError       the ledger cannot be read or written, so nothing is spent and nothing is sent
//       CollectorError     the collector cannot be reached, or refuses

export class VeilError extends Error {
  override readonly name: string = "VeilError"; // said outright: a bundle shortens the names of classes

  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export class DomainError extends VeilError {
  override readonly name = "DomainError";

  constructor(expected: string) {
    super("value", expected);
  }
}

export type SurveyProblem =
  | "form"
  | "key"
  | "signature"
  | "task"
  | "name"
  | "wave"
  | "rollback"
  | "outdated"
  | "ratio"
  | "fine-times"
  | "not-open"
  | "closed"
  | "unsupported";

export class SurveyError extends VeilError {
  override readonly name = "SurveyError";

  constructor(problem: SurveyProblem, message: string) {
    super(`survey-${problem}`, message);
  }
}

export class BudgetError extends VeilError {
  override readonly name = "BudgetError";

  constructor(message: string) {
    super("budget", message);
  }
}

export class StorageError extends VeilError {
  override readonly name = "StorageError";

  constructor(message: string) {
    super("storage", message);
  }
}

export class CollectorError extends VeilError {
  override readonly name = "CollectorError";
}
