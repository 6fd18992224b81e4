package main

import (
	"net/http"
	"slices"
	"sync"
)

// exchange is one request and the head of its answer.
type exchange struct {
	Method  string              `json:"method"`
	Path    string              `json:"path"`
	Query   map[string][]string `json:"query"`
	Sent    string              `json:"sent"`
	Accept  string              `json:"accept"`
	Status  int                 `json:"status"`
	Content string              `json:"content"`
}

// wire remembers what went over it.
type wire struct {
	mutex     sync.Mutex
	exchanges []exchange
}

func (w *wire) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil {
			return response, err
		}
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.exchanges = append(w.exchanges, exchange{
			Method: request.Method, Path: request.URL.Path, Query: request.URL.Query(),
			Sent: request.Header.Get("Content-Type"), Accept: request.Header.Get("Accept"),
			Status: response.StatusCode, Content: response.Header.Get("Content-Type"),
		})
		return response, nil
	})
}

func (w *wire) seen() []exchange {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.exchanges)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return r(request)
}
