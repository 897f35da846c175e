"""A small network with two hidden layers, with scikit-learn's verbs; trained long enough to become overconfident."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_EPOCHS, _BATCH = 40, 64


class Network:
    """Two hidden layers of equal width, rectified, trained by Adam on the log loss."""

    def __init__(self, hidden: int, seed: int) -> None:
        self.hidden, self.seed = hidden, seed

    def fit(self, X: NDArray[np.float64], y: NDArray[np.int64]) -> "Network":
        import torch
        from torch import nn

        torch.set_num_threads(1)
        self.classes_ = np.unique(y)
        rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            wide, count = X.shape[1], len(self.classes_)
            self.layers_: Any = nn.Sequential(
                nn.Linear(wide, self.hidden),
                nn.ReLU(),
                nn.Linear(self.hidden, self.hidden),
                nn.ReLU(),
                nn.Linear(self.hidden, count),
            )
            steps = torch.optim.Adam(self.layers_.parameters(), lr=2e-3)
            loss = nn.CrossEntropyLoss()
            for _ in range(_EPOCHS):
                for batch in torch.randperm(len(rows)).split(_BATCH):
                    steps.zero_grad()
                    loss(self.layers_(rows[batch]), labels[batch]).backward()
                    steps.step()
        return self

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        import torch

        with torch.no_grad():
            outputs = self.layers_(torch.tensor(X, dtype=torch.float32))
            return torch.softmax(outputs.double(), dim=1).numpy()
